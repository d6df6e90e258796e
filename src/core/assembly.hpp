// A model whose parts come one by one, from several shards.
#pragma once

#include "core/action.hpp"

#include <vector>

namespace rubato {

/// Owns a reference to what it is made of, and to each part until that is in its place.
class Assembly {
public:
    /// Of weights that others may hold, too: the first part goes into a copy. Takes over the role's reference.
    void begin(BufferId weights) { weights_ = weights; }
    /// Of a copy of weights that the role goes on owning.
    void begin_copy(ActionId id, BufferId weights, Actions& actions) {
        actions.add<Place>(placing_ = id, weights, no_buffer, Slice{});
    }

    void add(const Slice& part) { parts_.push_back(part); }
    /// Whether a part waits that can be placed now; with an id of the role's then.
    bool waits() const { return placing_ == 0 && !parts_.empty(); }
    void place(ActionId id, Actions& actions) {
        placing_ = id;
        placed_ = true;
        actions.add<Place>(id, own_ ? no_buffer : weights_, own_ ? std::exchange(weights_, no_buffer) : no_buffer,
                           parts_.front());
    }
    bool is_of(const Placed& event) const { return placing_ != 0 && placing_ == event.id; }
    void on(const Placed& event, Actions& actions) {
        placing_ = 0;
        if (std::exchange(placed_, false)) {
            actions.add<Release>(parts_.front().buffer);
            parts_.erase(parts_.begin());
        }
        if (weights_ != no_buffer) actions.add<Release>(weights_);
        weights_ = event.weights;
        own_ = true;
    }
    /// Nothing is under way, and nothing waits.
    bool settled() const { return placing_ == 0 && parts_.empty(); }
    bool placing() const { return placing_ != 0; }
    BufferId weights() const { return weights_; }
    /// Lets go of parts that are not wanted any more.
    void drop_parts(Actions& actions) {
        const std::size_t kept = placed_ ? 1 : 0;
        for (std::size_t i = kept; i < parts_.size(); ++i) actions.add<Release>(parts_[i].buffer);
        parts_.resize(kept);
    }
    void drop(Actions& actions) {
        if (weights_ != no_buffer) actions.add<Release>(weights_);
        weights_ = no_buffer;
    }
    bool operator==(const Assembly&) const = default;

private:
    BufferId weights_ = no_buffer;
    bool own_ = false;      ///< nobody else holds them
    ActionId placing_ = 0;  ///< 0: nothing is under way
    bool placed_ = false;   ///< that is of the first part
    std::vector<Slice> parts_;
};

}  // namespace rubato
