// The books of a worker.
#include "core/worker.hpp"

#include <doctest/doctest.h>

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
