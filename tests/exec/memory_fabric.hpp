// Ranks in one thread, for tests of what is built on a fabric: messages are matched as MPI matches them.
#pragma once

#include "exec/mpi/fabric.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
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
    /// One rank's part of a sum, or of a largest.
    struct Joined {
        exec::Ticket ticket = 0;
        float* data = nullptr;
        std::int32_t* number = nullptr;
        std::size_t count = 0;
    };
    std::vector<Rank> ranks;
    int groups = 0;
    std::map<int, std::vector<std::deque<Joined>>> joined;  ///< by group and rank: what others have not joined
    explicit MemoryNet(int size) : ranks(static_cast<std::size_t>(size)) {}
    Rank& at(int rank) { return ranks[static_cast<std::size_t>(rank)]; }

    /// The k-th of each rank are one, in the order of the ranks. Throws where they differ, as MPI need not.
    exec::Ticket join(int rank, int group, const Joined& part) {
        if (group < 0 || group >= groups) throw exec::FabricError("a group that is not open");
        auto& lines = joined[group];
        lines.resize(ranks.size());
        lines[static_cast<std::size_t>(rank)].push_back(part);
        for (const auto& line : lines)
            if (line.empty()) return part.ticket;
        std::vector<float> total(part.count, 0);
        std::int32_t most = 0;
        for (const auto& line : lines) {
            const Joined& it = line.front();
            if ((it.data == nullptr) != (part.data == nullptr) || it.count != part.count)
                throw exec::FabricError("ranks join in different sums");
            for (std::size_t i = 0; i < it.count && it.data != nullptr; ++i) total[i] += it.data[i];
            if (it.number != nullptr) most = std::max(most, *it.number);
        }
        for (std::size_t r = 0; r < lines.size(); ++r) {
            const Joined it = lines[r].front();
            lines[r].pop_front();
            if (it.data != nullptr) std::copy(total.begin(), total.end(), it.data);
            if (it.number != nullptr) *it.number = most;
            ranks[r].done.push_back({it.ticket, 0, 0});
        }
        return part.ticket;
    }

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
    exec::Ticket sum(int group, float* data, std::size_t count) override {
        return net_.join(rank_, group, {net_.at(rank_).next++, data, nullptr, count});
    }
    exec::Ticket largest(int group, std::int32_t* number) override {
        return net_.join(rank_, group, {net_.at(rank_).next++, nullptr, number, 1});
    }
    void open_groups(int groups) override { net_.groups = groups; }
    void broadcast(void*, std::size_t) override {}
    void barrier() override {}
    [[noreturn]] void abort(int) override { throw exec::FabricError("aborted"); }

private:
    MemoryNet& net_;
    int rank_;
};

}  // namespace rubato::test
