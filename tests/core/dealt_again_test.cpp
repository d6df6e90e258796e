// Batches that are dealt a second time.
#include "core/dealt_again.hpp"
#include "core/dealer.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace rubato;

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Of one sample each.
Dealer dealer_of(int samples) {
    DealerConfig config;
    config.samples = config.limit = samples;
    return Dealer(config);
}

}  // namespace

TEST_CASE("dealer: what was given back is dealt first and in that order, also of a saved state") {
    Dealer dealer = dealer_of(100);
    for (int i = 0; i < 10; ++i) dealer.deal(0);
    for (const int first : {4, 2, 9, 7}) dealer.give_back({0, 1, first});
    CHECK(dealer.deal(0).first == 4);
    Dealer again = dealer_of(100);
    again.deal(0);
    again.restore(dealer.state());
    for (Dealer* each : {&dealer, &again}) {
        CHECK(each->state().returned == std::vector<Batch>{{0, 1, 2}, {0, 1, 9}, {0, 1, 7}});
        CHECK(each->deal(0).first == 2);
        each->give_back({0, 1, 5});
        for (const int first : {9, 7, 5, 10}) CHECK(each->deal(0).first == first);
        CHECK(each->state().returned.empty());
    }
    CHECK(dealer == again);
}

TEST_CASE("dealer: many that are given back at once take no longer each than few") {
    constexpr int many = 300'000;
    Dealer dealer = dealer_of(many);
    for (int i = 0; i < many; ++i) dealer.deal(0);
    for (int i = 0; i < many; ++i) dealer.give_back({0, 1, many - i});
    const auto begin = std::chrono::steady_clock::now();
    int right = 0;
    for (int i = 0; i < many; ++i) right += dealer.deal(0).first == many - i;
    CHECK(right == many);
    CHECK(dealer.exhausted());
    CHECK(seconds_since(begin) < 5);  // milliseconds; a minute where each one moved the others
}

TEST_CASE("batches dealt again: those of each worker in their order, whoever asks first") {
    DealtAgain again({{2, {0, 1, 20}}, {0, {0, 1, 0}}, {2, {0, 1, 21}}, {0, {0, 1, 1}}});
    CHECK(again.any(0));
    CHECK(!again.any(1));
    CHECK(!again.any(3));
    CHECK(again.take(2).first == 20);
    CHECK(again.take(0).first == 0);
    std::vector<DealtBatch> left;
    again.append_to(left);
    CHECK(left == std::vector<DealtBatch>{{0, {0, 1, 1}}, {2, {0, 1, 21}}});
    CHECK(again.take(2).first == 21);
    CHECK(!again.any(2));
    CHECK(!again.empty());
    CHECK(again.take(0).first == 1);
    CHECK(again.empty());
    CHECK(again == DealtAgain());
}

TEST_CASE("batches dealt again: many workers take no longer each than few") {
    constexpr int workers = 200'000;
    std::vector<DealtBatch> batches;
    for (const int turn : {0, 1})
        for (WorkerId worker = 0; worker < workers; ++worker) batches.push_back({worker, {0, 1, turn}});
    DealtAgain again(batches);
    const auto begin = std::chrono::steady_clock::now();
    int right = 0;
    for (const int turn : {0, 1})
        for (WorkerId worker = workers; worker-- > 0;) right += again.any(worker) && again.take(worker).first == turn;
    CHECK(right == 2 * workers);
    CHECK(again.empty());
    CHECK(seconds_since(begin) < 5);
}
