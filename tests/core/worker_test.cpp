// A worker by itself: its books, and what happens to it in real time only.
#include "core/worker.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace rubato;

TEST_CASE("worker: its books cover the run from its beginning, also where it starts late or goes on") {
    for (const Time before : {Time{0}, Time{400}}) {
        WorkerRow earlier;
        earlier.compute_ns = before;
        Worker worker({.worker = 0, .server = 0}, earlier);
        Actions actions;
        worker.step(before + 100, Start{0}, actions);
        const WorkerRow books = worker.books(before + 150);
        CHECK(books.sum_ns() == before + 150);
        CHECK(books.compute_ns == before);
        Stop stop;
        worker.step(before + 250, Delivered{0, Channel::control, stop, {}, before + 200, before + 200}, actions);
        CHECK(worker.books(before + 250).sum_ns() == before + 250);
    }
}

TEST_CASE("worker: in real time its books may be ahead of its start, and are not cut") {
    WorkerRow earlier;
    earlier.compute_ns = 500;
    Worker worker({.worker = 0, .server = 0}, earlier);
    Actions actions;
    worker.step(450, Start{0}, actions);
    CHECK(worker.books(450).idle_ns == 0);
}

namespace {

/// A worker that is dealt three gradients at once, in the middle of the step after its first one: only in real time
/// does anything else happen there.
struct InTheMiddleOfAStep {
    Worker worker{{.worker = 0, .server = 0, .batch_size = 10}};
    Actions actions;
    ActionId step = 0;

    InTheMiddleOfAStep() {
        see(0, Start{1});
        Proceed proceed;
        proceed.batch = {0, 30, 0};
        proceed.learning_rate = 0.5;
        see(10, Delivered{0, Channel::control, proceed, {}, 0, 0});
        REQUIRE(last<Compute>() != nullptr);
        see(20, GradientReady{last<Compute>()->id, 5, 10, 20, 0.1});
        REQUIRE(last<LocalStep>() != nullptr);
        step = last<LocalStep>()->id;
    }
    void see(Time now, const Event& event) {
        actions = {};
        worker.step(now, event, actions);
    }
    template <class Kind>
    const Kind* last() const {
        return actions.list.empty() ? nullptr : std::get_if<Kind>(&actions.list.back());
    }
    bool releases(BufferId buffer) const {
        return std::count(actions.list.begin(), actions.list.end(), Action(Release{buffer})) == 1;
    }
};

}  // namespace

TEST_CASE("worker: a sum that is no longer wanted is given up when the step under way is done") {
    InTheMiddleOfAStep it;
    it.see(25, Delivered{0, Channel::control, Halt{0}, {}, 20, 20});
    CHECK(it.actions.list.empty());  // there is no gradient to cancel
    it.see(30, Stepped{it.step, 7, no_buffer});
    REQUIRE(it.last<Send>() != nullptr);
    const auto* gave_up = std::get_if<GaveUp>(&it.last<Send>()->message);
    REQUIRE(gave_up != nullptr);
    CHECK(gave_up->gradient.count == 1);
    CHECK(gave_up->gradient.batch.count == 30);
    CHECK(it.releases(5));
    // The weights of the answer take the place of its own.
    it.see(40, Delivered{0, Channel::weights, Weights{}, {9, 0, 1}, 30, 30});
    CHECK(it.releases(7));
    CHECK(it.releases(1));
}

TEST_CASE("worker: the end in the middle of a step leaves nothing behind") {
    InTheMiddleOfAStep it;
    it.see(25, Delivered{0, Channel::control, Stop{1}, {}, 20, 20});
    CHECK(it.actions.list.empty());
    it.see(30, Stepped{it.step, 7, no_buffer});
    REQUIRE(it.last<Send>() != nullptr);
    const auto* bye = std::get_if<Bye>(&it.last<Send>()->message);
    REQUIRE(bye != nullptr);
    CHECK(bye->cancelled);
    CHECK(bye->gradient.count == 1);
    CHECK(it.releases(5));
    it.see(40, Taken{it.last<Send>()->id, 30});
    CHECK(it.releases(7));
    CHECK(it.releases(1));
    CHECK(it.worker.finished());
    CHECK(it.worker.books(40).sum_ns() == 40);
}
