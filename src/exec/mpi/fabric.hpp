// What the driver of the `mpi` backend needs of a message-passing library: ranks, and messages of bytes between them.
//
// The implementation over MPI lives in a module of its own (mpi_fabric.cpp), which is opened on demand; tests have one
// in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace rubato::exec {

/// The library or its launcher cannot do what is asked for; what() is one line.
struct FabricError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A message under way.
using Ticket = std::int32_t;

/// A message that is done; `from` and `bytes` are those of a received one.
struct Completion {
    Ticket ticket = 0;
    int from = 0;
    std::size_t bytes = 0;
};

/// Only the thread that opened it may call. Messages of one sender, receiver and tag keep their order.
class Fabric {
public:
    static constexpr int any_rank = -1;

    virtual ~Fabric() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// Ranks on this host, this one included.
    virtual int ranks_on_host() const = 0;
    virtual std::string library() const = 0;

    /// Starts a send or receive; the memory must stay as it is until its completion. synchronous: it is done only when
    /// the receiver has begun to take it.
    virtual Ticket send(int to, int tag, const void* data, std::size_t bytes, bool synchronous) = 0;
    virtual Ticket receive(int from, int tag, void* data, std::size_t bytes) = 0;
    /// Appends what is done by now, and lets everything else go on.
    virtual void poll(std::vector<Completion>& done) = 0;
    /// Takes back a receive that nothing has come for; if something has, it is done all the same.
    virtual void cancel(Ticket receive) = 0;

    /// Starts a sum, or the largest, of what all ranks have there, which is there in the end: with the same bits
    /// everywhere. All ranks start those of a group in the same order; groups do not wait for each other. The memory
    /// must stay as it is until its completion, whose `from` and `bytes` say nothing.
    virtual Ticket sum(int group, float* data, std::size_t count) = 0;
    virtual Ticket largest(int group, std::int32_t* number) = 0;
    /// Before the first of them: there are groups 0 to groups - 1. All ranks together; blocking.
    virtual void open_groups(int groups) = 0;

    /// All ranks together, in the same order everywhere; blocking.
    virtual void broadcast(void* data, std::size_t bytes) = 0;  ///< from rank 0
    virtual void barrier() = 0;

    /// Ends the program on all ranks at once, those that do not answer included.
    [[noreturn]] virtual void abort(int status) = 0;
};

/// Opens the module and joins the others; once a process. Throws FabricError.
std::unique_ptr<Fabric> open_mpi();

}  // namespace rubato::exec
