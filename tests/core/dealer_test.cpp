// Batches that workers draw by themselves.
#include "core/dealer.hpp"

#include <doctest/doctest.h>
#include <map>
#include <set>

using namespace rubato;

TEST_CASE("a worker's own batches are those that a dealer without a limit would deal it") {
    for (const Sampling sampling : {Sampling::strided, Sampling::random, Sampling::sharded})
        for (const std::int64_t samples : {1, 7, 10, 64, 97})
            for (const int lambda : {1, 2, 3, 8})
                for (const int batch_size : {1, 3, 10, 200}) {
                    const DealerConfig config{sampling, samples, batch_size, lambda};
                    CAPTURE(samples);
                    CAPTURE(lambda);
                    CAPTURE(batch_size);
                    Dealer dealer(config);
                    for (std::int64_t k = 0; k < 40; ++k)
                        for (WorkerId worker = 0; worker < lambda; ++worker) {
                            Batch dealt = dealer.deal(worker);
                            const Batch own = own_batch(config, worker, k);
                            // Of samples drawn at random only the position counts, not what epoch others have reached.
                            if (sampling == Sampling::random) dealt.epoch = own.epoch;
                            REQUIRE(own == dealt);
                        }
                }
}

TEST_CASE("own batches of strided and sharded workers cover an epoch once") {
    for (const Sampling sampling : {Sampling::strided, Sampling::sharded}) {
        const DealerConfig config{sampling, 103, 10, 4};
        std::map<std::int64_t, int> times;
        for (WorkerId worker = 0; worker < 4; ++worker) {
            std::int64_t base = 0;
            if (sampling == Sampling::sharded)
                for (int w = 0; w < worker; ++w) base += shard_samples(103, 4, w);
            for (std::int64_t k = 0;; ++k) {
                const Batch batch = own_batch(config, worker, k);
                if (batch.epoch > 0) break;
                for (std::int64_t i = 0; i < batch.count; ++i) ++times[base + batch.first + i];
            }
        }
        CHECK(times.size() == 103);
        for (const auto& [position, count] : times) CHECK(count == 1);
    }
}
