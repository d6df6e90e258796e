// Late updates along gradients that are not multiplied out.
#include "chain.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <vector>

using namespace rubato;
using namespace rubato::learn;

TEST_CASE("late update: gradients that are factors make the same bits, multiplied out in the update or before") {
    for (const auto& spec : optimizers_and_rules()) {
        for (const int wait : {1, 3}) {
            Chain chain(spec), before(spec);
            chain.gradients = Chain::Gradients::factors;
            before.gradients = Chain::Gradients::multiplied_out;
            for (int i = 0; i < 12; ++i) {
                chain.add();
                before.add();
                if (i % wait == 0) chain.late.run();
                before.late.run();
            }
            chain.late.run();
            CHECK(chain.buffers.multiplied_out() == 0);
            CHECK(before.buffers.multiplied_out() == 12);
            for (Version version = 0; version <= 12; ++version)
                REQUIRE_MESSAGE(chain.values(version) == before.values(version), spec.name, " version ", version);
            CHECK(std::ranges::equal(chain.optimizer.state(), before.optimizer.state()));
            CHECK(chain.values(12) != chain.values(11));
        }
    }
}

TEST_CASE("late update: threads that multiply out together make the same bits, also where some gradients are sums") {
    for (const auto& spec : optimizers_and_rules()) {
        constexpr int updates = 12;
        Chain shared(spec), alone(spec);
        shared.late.share_among(2);
        shared.gradients = Chain::Gradients::factors;
        alone.gradients = Chain::Gradients::multiplied_out;
        std::vector<std::int64_t> numbers;
        for (int i = 0; i < updates; ++i) {
            shared.add(i % 3);
            alone.add(i % 3);
            numbers.push_back(shared.late.needed_for(shared.versions.back()));
        }
        CHECK(shared.buffers.multiplied_out() == updates);  // of the sums
        std::thread other([&] {
            for (std::size_t i = 0; i < updates; i += 2) shared.late.run_to(numbers[i]);
        });
        for (std::size_t i = 1; i < updates; i += 2) shared.late.run_to(numbers[i]);
        other.join();
        alone.late.run();
        for (Version version = 1; version <= updates; ++version)
            REQUIRE_MESSAGE(shared.values(version) == alone.values(version), spec.name, " version ", version);
        CHECK(std::ranges::equal(shared.optimizer.state(), alone.optimizer.state()));
    }
}

TEST_CASE(
    "late update: multiplied out in the update, a version takes the memory of the old one where nobody reads it") {
    for (const bool read : {false, true}) {
        Chain chain{OptimizerSpec{}};
        chain.gradients = Chain::Gradients::factors;
        chain.kept.forget(0);
        const float* old = chain.buffers.data(chain.versions[0]).data();
        const auto was = chain.values(0);
        std::vector<BufferId> versions{chain.versions[0]};
        chain.add(versions, 0, 0, 0);
        if (!read) chain.buffers.release(versions[0]);
        chain.late.run();
        CHECK((chain.buffers.data(versions[1]).data() == old) == !read);
        if (read) CHECK(chain.values(0) == was);
        CHECK(!std::ranges::equal(chain.buffers.data(versions[1]), was));
    }
}

TEST_CASE("late update: a thread that is alone runs of those that multiply out as many as are needed") {
    for (const bool factors : {false, true}) {
        Chain chain{OptimizerSpec{}};
        if (factors) chain.gradients = Chain::Gradients::factors;
        for (int i = 0; i < 4; ++i) chain.add();
        const auto number = chain.late.needed_for(chain.versions[2]);
        CHECK(number == (factors ? 2 : 4));
        chain.late.run_to(number);
        CHECK(chain.late.needed_for(chain.versions[2]) == 0);
        CHECK(chain.late.needed_for(chain.versions[3]) == (factors ? 3 : 0));
    }
}
