#include "core/collective/allreduce.hpp"

#include "core/let_go.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

void Allreduce::begin(BufferId own, double weight, std::int32_t wish) {
    own_ = own;
    weight_ = weight;
    wish_ = std::max(wish_, wish);
    begun_ = true;
}

void Allreduce::come(int from, const Slice& part, const Chunk& chunk) {
    arrived_.push_back({from, part, chunk});
}

void Allreduce::send(ActionId id, Actions& actions) {
    const Route::Out& out = route_.outs[next_out_++];
    under_way_.push_back(id);
    const Chunk chunk{number_, out.own ? weight_ : 1, wish_};
    // Without a payload, it must not overtake one on its channel.
    if (out.what.count == 0) {
        actions.add<Send>(id, out.to + 1, Channel::control, Message(chunk), Slice{});
        return;
    }
    actions.add<Send>(id, out.to + 1, Channel::gradient, Message(chunk),
                      Slice{out.own ? own_ : sum_, out.what.first, out.what.count});
}

void Allreduce::take_words() {
    while (scaled() && op_ == 0 && done_ins_ < route_.ins.size() && route_.ins[done_ins_].work == Route::Work::word) {
        const auto come = std::find_if(arrived_.begin(), arrived_.end(), [&](const Arrived& it) {
            return it.from == route_.ins[done_ins_].from && it.part.buffer == no_buffer;
        });
        if (come == arrived_.end()) return;
        wish_ = std::max(wish_, come->chunk.wish);
        arrived_.erase(come);
        ++done_ins_;
    }
}

// The first one makes the sum, so that the contribution itself stays as it is.
void Allreduce::fold(ActionId id, const Slice& part, double weight, const Range& what, Actions& actions) {
    Fold& fold = actions.add<Fold>(op_ = id, std::exchange(sum_, no_buffer), part.buffer, weight);
    fold.first = what.first;
    fold.count = what.count;
}

void Allreduce::worked(BufferId sum, Actions& actions) {
    op_ = 0;
    sum_ = sum;
    let_go(taking_in_, actions);
    let_go(replaced_, actions);
    if (scaled())
        ++done_ins_;
    else
        started_ = true;
}

void Allreduce::on(const Summed& event, Actions& actions) {
    wish_ = std::max(wish_, event.wish);
    worked(event.sum, actions);
}

bool Allreduce::is_of(const Taken& event) const {
    return std::find(under_way_.begin(), under_way_.end(), event.id) != under_way_.end();
}

void Allreduce::on(const Taken& event) {
    std::erase(under_way_, event.id);
}

BufferId Allreduce::sum() const {
    if (!ready()) throw std::logic_error("a sum that is not there");
    return sum_;
}

// Whoever is sent it holds it as long as that takes.
void Allreduce::end_sum(Actions& actions) {
    if (next_out_ == route_.outs.size()) let_go(sum_, actions);
}

int Allreduce::waits_for() const {
    return begun_ && op_ == 0 && scaled() && done_ins_ < route_.ins.size() ? route_.ins[done_ins_].from : -1;
}

}  // namespace rubato
