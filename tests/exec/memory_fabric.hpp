// Ranks in one thread, for tests of what is built on a fabric: messages are matched as MPI matches them.
#pragma once

#include "exec/mpi/fabric.hpp"

#include <cstring>
#include <deque>
#include <memory>

namespace rubato::test {

/// What all ranks share. A test polls the ranks in any order it likes.
struct MemoryNet {
    struct Sent {
        int from, tag;
        const char* data;
        std::size_t bytes;
        exec::Ticket ticket;
    };
    struct Posted {
        int from, tag;
        char* data;
        std::size_t bytes;
        exec::Ticket ticket;
    };
    struct Rank {
        std::deque<Sent> arrived;  ///< not yet matched
        std::deque<Posted> posted;
        std::vector<exec::Completion> done;
        exec::Ticket next = 0;
    };
    std::vector<Rank> ranks;
    explicit MemoryNet(int size) : ranks(static_cast<std::size_t>(size)) {}
    Rank& at(int rank) { return ranks[static_cast<std::size_t>(rank)]; }

    /// Matches the oldest messages with the oldest receives that fit. Throws where a message is longer than its place.
    void match(int rank) {
        auto& to = at(rank);
        for (auto sent = to.arrived.begin(); sent != to.arrived.end();) {
            auto posted = to.posted.begin();
            while (posted != to.posted.end() &&
                   !(posted->tag == sent->tag && (posted->from < 0 || posted->from == sent->from)))
                ++posted;
            if (posted == to.posted.end()) {
                ++sent;
                continue;
            }
            if (sent->bytes > posted->bytes) throw exec::FabricError("a message is longer than its place");
            std::memcpy(posted->data, sent->data, sent->bytes);
            to.done.push_back({posted->ticket, sent->from, sent->bytes});
            at(sent->from).done.push_back({sent->ticket, rank, sent->bytes});
            to.posted.erase(posted);
            sent = to.arrived.erase(sent);
        }
    }
};

class MemoryFabric final : public exec::Fabric {
public:
    MemoryFabric(MemoryNet& net, int rank) : net_(net), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(net_.ranks.size()); }
    int ranks_on_host() const override { return size(); }
    std::string library() const override { return "memory"; }
    exec::Ticket send(int to, int tag, const void* data, std::size_t bytes, bool) override {
        const auto ticket = net_.at(rank_).next++;
        net_.at(to).arrived.push_back({rank_, tag, static_cast<const char*>(data), bytes, ticket});
        return ticket;
    }
    exec::Ticket receive(int from, int tag, void* data, std::size_t bytes) override {
        const auto ticket = net_.at(rank_).next++;
        net_.at(rank_).posted.push_back({from, tag, static_cast<char*>(data), bytes, ticket});
        return ticket;
    }
    void poll(std::vector<exec::Completion>& done) override {
        net_.match(rank_);
        auto& mine = net_.at(rank_).done;
        done.insert(done.end(), mine.begin(), mine.end());
        mine.clear();
    }
    void cancel(exec::Ticket receive) override {
        std::erase_if(net_.at(rank_).posted, [&](const auto& posted) { return posted.ticket == receive; });
    }
    void broadcast(void*, std::size_t) override {}
    void barrier() override {}
    [[noreturn]] void abort(int) override { throw exec::FabricError("aborted"); }

private:
    MemoryNet& net_;
    int rank_;
};

}  // namespace rubato::test
