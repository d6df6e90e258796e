// Versions of the weights that a staleness rule will look at: what Keep and Forget ask of a driver.
#pragma once

#include "core/action.hpp"
#include "learn/buffers.hpp"

#include <map>
#include <stdexcept>
#include <string>

namespace rubato::learn {

/// Holds on to contents that are there, so nothing is copied; what is held is never changed. Not thread-safe.
class Kept {
public:
    explicit Kept(BufferPool& pool) : pool_(pool) {}

    void keep(const Keep& action) { keep(action.version, action.weights); }
    /// buffer: a handle of the pool.
    void keep(Version version, BufferId buffer) {
        const auto [it, fresh] = held_.emplace(version, BufferPool::Contents{});
        if (!fresh) throw std::logic_error("version " + std::to_string(version) + " is kept already");
        it->second = pool_.hold(buffer);
    }
    void forget(Version version) {
        pool_.drop(at(version));
        held_.erase(version);
    }
    /// Throws std::logic_error where it is not kept.
    BufferPool::Contents at(Version version) const {
        const auto it = held_.find(version);
        if (it == held_.end()) throw std::logic_error("version " + std::to_string(version) + " is not kept");
        return it->second;
    }
    const float* weights(Version version) { return pool_.data(at(version)).data(); }
    std::size_t count() const { return held_.size(); }

private:
    BufferPool& pool_;
    std::map<Version, BufferPool::Contents> held_;
};

}  // namespace rubato::learn
