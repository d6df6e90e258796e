// The fabric over MPI: the only file that sees its headers.
#include "exec/mpi/fabric.hpp"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdlib>
#include <limits>
#include <utility>

namespace rubato::exec {
namespace {

/// What a call said that failed. By default MPI would end the program instead.
void check(int code, const char* what) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw FabricError(std::string(what) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

int int_of(std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw FabricError("a message of " + std::to_string(bytes) + " bytes was not cut into pieces");
    return static_cast<int>(bytes);
}

class MpiFabric final : public Fabric {
public:
    MpiFabric() {
        int level = MPI_THREAD_SINGLE;
        if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
            throw FabricError("MPI_Init_thread failed");
        if (level < MPI_THREAD_FUNNELED) {
            MPI_Finalize();
            throw FabricError(
                "the MPI library grants MPI_THREAD_SINGLE only, expected MPI_THREAD_FUNNELED: lanes compute on threads "
                "of their own; build or load the library with support for threads");
        }
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
        MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
        MPI_Comm_rank(comm_, &rank_);
        MPI_Comm_size(comm_, &size_);
        MPI_Comm host = MPI_COMM_NULL;
        MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
        MPI_Comm_size(host, &ranks_on_host_);
        MPI_Comm_free(&host);
    }
    ~MpiFabric() override {
        // Those of collectives must not be freed; a run that ends in order leaves none.
        for (std::size_t i = 0; i < requests_.size(); ++i)
            if (requests_[i] != MPI_REQUEST_NULL && !collective_[i]) MPI_Request_free(&requests_[i]);
        for (MPI_Comm& group : groups_) MPI_Comm_free(&group);
        MPI_Comm_free(&comm_);
        MPI_Finalize();
    }
    MpiFabric(const MpiFabric&) = delete;
    MpiFabric& operator=(const MpiFabric&) = delete;

    int rank() const override { return rank_; }
    int size() const override { return size_; }
    int ranks_on_host() const override { return ranks_on_host_; }
    std::string library() const override {
        char text[MPI_MAX_LIBRARY_VERSION_STRING];
        int length = 0;
        MPI_Get_library_version(text, &length);
        const std::string whole(text, static_cast<std::size_t>(length));
        return whole.substr(0, whole.find_first_of(",\n"));
    }

    Ticket send(int to, int tag, const void* data, std::size_t bytes, bool synchronous) override {
        const Ticket ticket = next_ticket();
        MPI_Request& request = requests_[static_cast<std::size_t>(ticket)];
        const auto start = synchronous ? MPI_Issend : MPI_Isend;
        check(start(data, int_of(bytes), MPI_BYTE, to, tag, comm_, &request), "MPI_Isend");
        return ticket;
    }
    Ticket receive(int from, int tag, void* data, std::size_t bytes) override {
        const Ticket ticket = next_ticket();
        check(MPI_Irecv(data, int_of(bytes), MPI_BYTE, from == any_rank ? MPI_ANY_SOURCE : from, tag, comm_,
                        &requests_[static_cast<std::size_t>(ticket)]),
              "MPI_Irecv");
        return ticket;
    }
    void poll(std::vector<Completion>& done) override {
        const auto count = requests_.size();
        indices_.resize(count);
        statuses_.resize(count);
        int ready = 0;
        check(MPI_Testsome(static_cast<int>(count), requests_.data(), &ready, indices_.data(), statuses_.data()),
              "MPI_Testsome");
        if (ready == MPI_UNDEFINED) return;
        for (int i = 0; i < ready; ++i) {
            const auto& status = statuses_[static_cast<std::size_t>(i)];
            int cancelled = 0, bytes = 0;
            const Ticket ticket = indices_[static_cast<std::size_t>(i)];
            free_.push_back(ticket);
            if (std::exchange(collective_[static_cast<std::size_t>(ticket)], 0) != 0) {  // whose status says nothing
                done.push_back({ticket, 0, 0});
                continue;
            }
            MPI_Test_cancelled(&status, &cancelled);
            if (cancelled) continue;
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            done.push_back({ticket, status.MPI_SOURCE, static_cast<std::size_t>(bytes)});
        }
    }
    void cancel(Ticket receive) override {
        MPI_Request& request = requests_[static_cast<std::size_t>(receive)];
        if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    }

    void open_groups(int groups) override {
        groups_.resize(static_cast<std::size_t>(groups), MPI_COMM_NULL);
        for (MPI_Comm& group : groups_) {
            check(MPI_Comm_dup(comm_, &group), "MPI_Comm_dup");
            MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
        }
    }
    Ticket sum(int group, float* data, std::size_t count) override {
        return reduce(group, data, int_of(count), MPI_FLOAT, MPI_SUM);
    }
    Ticket largest(int group, std::int32_t* number) override { return reduce(group, number, 1, MPI_INT32_T, MPI_MAX); }

    void broadcast(void* data, std::size_t bytes) override {
        check(MPI_Bcast(data, int_of(bytes), MPI_BYTE, 0, comm_), "MPI_Bcast");
    }
    void barrier() override { check(MPI_Barrier(comm_), "MPI_Barrier"); }

    [[noreturn]] void abort(int status) override {
        MPI_Abort(MPI_COMM_WORLD, status);
        std::_Exit(status);
    }

private:
    Ticket reduce(int group, void* data, int count, MPI_Datatype type, MPI_Op operation) {
        const Ticket ticket = next_ticket();
        collective_[static_cast<std::size_t>(ticket)] = 1;
        check(MPI_Iallreduce(MPI_IN_PLACE, data, count, type, operation, groups_.at(static_cast<std::size_t>(group)),
                             &requests_[static_cast<std::size_t>(ticket)]),
              "MPI_Iallreduce");
        return ticket;
    }
    Ticket next_ticket() {
        if (free_.empty()) {
            requests_.push_back(MPI_REQUEST_NULL);
            collective_.push_back(0);
            return static_cast<Ticket>(requests_.size() - 1);
        }
        const Ticket ticket = free_.back();
        free_.pop_back();
        return ticket;
    }

    MPI_Comm comm_ = MPI_COMM_NULL;
    std::vector<MPI_Comm> groups_;  ///< of collectives: each has its own, so that only their order within it counts
    int rank_ = 0, size_ = 1, ranks_on_host_ = 1;
    std::vector<MPI_Request> requests_;  ///< by ticket
    std::vector<char> collective_;       ///< by ticket: it is one's
    std::vector<Ticket> free_;
    std::vector<int> indices_;
    std::vector<MPI_Status> statuses_;
};

}  // namespace
}  // namespace rubato::exec

extern "C" __attribute__((visibility("default"))) rubato::exec::Fabric* rubato_open_mpi() {
    return new rubato::exec::MpiFabric;
}
