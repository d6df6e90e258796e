// An allreduce as a part of a worker's role: the weighted sum of what all ranks have, with all of them, made of sends
// and sums (route.hpp has the algorithms). The sums go on beside the worker's computation.
#pragma once

#include "core/action.hpp"
#include "core/collective/route.hpp"
#include "core/event.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rubato {

class Allreduce {
public:
    Allreduce() = default;
    /// paced: see make_route. group: of the sum, where the driver's library takes it.
    Allreduce(AllreduceAlgorithm algorithm, int rank, int size, std::int64_t number, const Range& what, bool paced,
              int group)
        : rank_(rank),
          group_(group),
          number_(number),
          what_(what),
          route_(make_route(algorithm, rank, size, what, paced)) {}

    std::int64_t number() const { return number_; }
    /// `own`, of which the caller keeps its reference until over(), counts with `weight`; wish: see Chunk.
    void begin(BufferId own, double weight, std::int32_t wish);
    /// A part has come, which may be before the rank's own beginning; takes over the reference.
    void come(int from, const Slice& part, const Chunk& chunk);
    /// Begins what can be begun now; how many messages it has sent.
    template <class NextId>
    int go_on(NextId&& next_id, Actions& actions) {
        int sent = 0;
        if (!begun_) return sent;
        take_words();
        while (next_out_ < route_.outs.size() && route_.outs[next_out_].after <= done_ins_ && has_sum(next_out_) &&
               !(route_.outs[next_out_].alone && !under_way_.empty())) {
            send(next_id(), actions);
            ++sent;
        }
        if (given_up_) end_sum(actions);
        if (op_ == 0 && (!scaled() || done_ins_ < route_.ins.size())) work(next_id, actions);
        return sent;
    }
    bool is_of(const Folded& event) const { return op_ != 0 && event.id == op_; }
    bool is_of(const Mixed& event) const { return op_ != 0 && event.id == op_; }
    bool is_of(const Placed& event) const { return op_ != 0 && event.id == op_; }
    bool is_of(const Summed& event) const { return op_ != 0 && event.id == op_; }
    bool is_of(const Taken& event) const;
    void on(const Folded& event, Actions& actions) { worked(event.accumulator, actions); }
    void on(const Mixed& event, Actions& actions) { worked(event.out, actions); }
    void on(const Placed& event, Actions& actions) { worked(event.weights, actions); }
    void on(const Summed& event, Actions& actions);
    void on(const Taken& event);

    bool begun() const { return begun_; }
    /// The sum is there.
    bool ready() const { return begun_ && op_ == 0 && scaled() && done_ins_ == route_.ins.size(); }
    /// And all that was sent has been taken.
    bool over() const { return ready() && sent_all(); }
    bool sent_all() const { return next_out_ == route_.outs.size() && under_way_.empty(); }
    /// What all wished for; for whom ready().
    std::int32_t wish() const { return wish_; }
    /// The sum, for whom ready(). It is there until give_up(), from when on only what is still to be sent needs it.
    BufferId sum() const;
    void give_up(Actions& actions) {
        given_up_ = true;
        end_sum(actions);
    }
    /// Whose part it waits for; -1: nobody's.
    int waits_for() const;
    /// The driver's library is at work on it.
    bool in_library() const {
        return op_ != 0 && scaled() && done_ins_ < route_.ins.size() &&
               route_.ins[done_ins_].work == Route::Work::library;
    }
    bool operator==(const Allreduce&) const = default;

private:
    struct Arrived {
        int from = 0;
        Slice part;
        Chunk chunk;
        bool operator==(const Arrived&) const = default;
    };
    bool scaled() const { return route_.begins_empty || started_; }
    bool has_sum(std::size_t out) const { return route_.outs[out].own || scaled(); }
    void send(ActionId id, Actions& actions);
    template <class NextId>
    void work(NextId&& next_id, Actions& actions);
    void fold(ActionId id, const Slice& part, double weight, const Range& what, Actions& actions);
    void worked(BufferId sum, Actions& actions);
    void take_words();
    void end_sum(Actions& actions);

    int rank_ = 0, group_ = 0;
    std::int64_t number_ = 0;
    Range what_;
    Route route_;
    bool given_up_ = false;
    bool begun_ = false, started_ = false;  ///< started_: the sum has the rank's own contribution, where it begins so
    BufferId own_ = no_buffer, sum_ = no_buffer;
    double weight_ = 1;
    std::int32_t wish_ = 0;
    std::size_t next_out_ = 0, done_ins_ = 0;
    std::vector<Arrived> arrived_;
    ActionId op_ = 0;
    BufferId taking_in_ = no_buffer;  ///< whose reference ends with op_
    BufferId replaced_ = no_buffer;   ///< the sum before, in the same way
    std::vector<ActionId> under_way_;
};

template <class NextId>
void Allreduce::work(NextId&& next_id, Actions& actions) {
    if (!scaled()) return fold(next_id(), {own_, 0, 0}, weight_, what_, actions);
    const Route::In& in = route_.ins[done_ins_];
    if (in.work == Route::Work::word) return;
    if (in.work == Route::Work::library) {
        actions.add<SumAll>(op_ = next_id(), number_, group_, std::exchange(sum_, no_buffer), in.what.first,
                            in.what.count, wish_);
        return;
    }
    if (in.from == rank_) return fold(next_id(), {own_, 0, 0}, weight_, in.what, actions);
    const auto come = std::find_if(arrived_.begin(), arrived_.end(), [&](const Arrived& it) {
        return it.from == in.from && it.part.buffer != no_buffer;
    });
    if (come == arrived_.end()) return;
    const Arrived it = *come;
    arrived_.erase(come);
    wish_ = std::max(wish_, it.chunk.wish);
    taking_in_ = it.part.buffer;
    if (in.work == Route::Work::fold) return fold(next_id(), it.part, it.chunk.weight, in.what, actions);
    op_ = next_id();
    if (in.work == Route::Work::place) {
        actions.add<Place>(op_, no_buffer, std::exchange(sum_, no_buffer), it.part);
        return;
    }
    Mix& mix = actions.add<Mix>();
    mix.id = op_;
    mix.work = Mix::Work::sum;
    mix.beside = true;
    mix.first = in.what.first;
    mix.count = in.what.count;
    mix.add(sum_, 1);
    mix.add(it.part.buffer, 1);
    replaced_ = std::exchange(sum_, no_buffer);
}

}  // namespace rubato
