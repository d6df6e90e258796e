// Batches that go to the same workers once more, after a resume.
#pragma once

#include "core/run_state.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rubato {

/// By worker, each in the order in which its batches were dealt; none of the questions takes a scan over workers.
class DealtAgain {
public:
    DealtAgain() = default;
    explicit DealtAgain(std::vector<DealtBatch> batches) : batches_(std::move(batches)), left_(batches_.size()) {
        std::stable_sort(batches_.begin(), batches_.end(),
                         [](const DealtBatch& a, const DealtBatch& b) { return a.worker < b.worker; });
        if (left_ > 0) next_.assign(static_cast<std::size_t>(batches_.back().worker) + 1, 0);
        for (std::size_t i = batches_.size(); i-- > 0;) next_[static_cast<std::size_t>(batches_[i].worker)] = i;
    }

    bool empty() const { return left_ == 0; }
    bool any(WorkerId worker) const {
        const auto at = static_cast<std::size_t>(worker);
        return left_ > 0 && at < next_.size() && next_[at] < batches_.size() && batches_[next_[at]].worker == worker;
    }
    /// The next one of a worker that has any.
    Batch take(WorkerId worker) {
        const Batch batch = batches_[next_[static_cast<std::size_t>(worker)]++].batch;
        if (--left_ == 0) *this = DealtAgain();
        return batch;
    }
    void append_to(std::vector<DealtBatch>& out) const {
        for (std::size_t i = 0; i < batches_.size(); ++i)
            if (i >= next_[static_cast<std::size_t>(batches_[i].worker)]) out.push_back(batches_[i]);
    }
    bool operator==(const DealtAgain&) const = default;

private:
    std::vector<DealtBatch> batches_;  ///< in the order of workers
    std::vector<std::size_t> next_;    ///< by worker: the first of its own that is left, or beyond them
    std::size_t left_ = 0;
};

}  // namespace rubato
