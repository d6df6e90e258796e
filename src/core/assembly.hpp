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
    /// Of weights that somebody goes on reading: parts go into a copy of them, which takes their place at swap(). Takes
    /// over the role's reference.
    void begin_beside(BufferId base) { base_ = base; }
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
        const BufferId whole = own_ ? std::exchange(weights_, no_buffer) : no_buffer;
        actions.add<Place>(id, own_ ? no_buffer : source(), whole, parts_.front());
    }
    bool is_of(const Placed& event) const { return placing_ != 0 && placing_ == event.id; }
    /// The part that is in its place now; an empty one where there was none to place.
    Slice on(const Placed& event, Actions& actions) {
        placing_ = 0;
        Slice part;
        if (std::exchange(placed_, false)) {
            part = parts_.front();
            actions.add<Release>(part.buffer);
            parts_.erase(parts_.begin());
        }
        if (weights_ != no_buffer) actions.add<Release>(weights_);
        weights_ = event.weights;
        own_ = true;
        return part;
    }
    /// Beside a base: the parts that are in their places are of it from now on. False: there are none, or one is being
    /// placed, and all stays as it is. Nobody may read the base any more.
    bool swap(Actions& actions) {
        if (weights_ == no_buffer) return false;
        actions.add<Release>(base_);
        base_ = std::exchange(weights_, no_buffer);
        own_ = false;
        return true;
    }
    /// Nothing is under way, and nothing waits.
    bool settled() const { return placing_ == 0 && parts_.empty(); }
    bool placing() const { return placing_ != 0; }
    BufferId weights() const { return weights_; }
    BufferId base() const { return base_; }
    /// Lets go of parts that are not wanted any more.
    void drop_parts(Actions& actions) {
        const std::size_t kept = placed_ ? 1 : 0;
        for (std::size_t i = kept; i < parts_.size(); ++i) actions.add<Release>(parts_[i].buffer);
        parts_.resize(kept);
    }
    void drop(Actions& actions) {
        for (BufferId* held : {&weights_, &base_})
            if (*held != no_buffer) actions.add<Release>(std::exchange(*held, no_buffer));
    }
    bool operator==(const Assembly&) const = default;

private:
    BufferId source() const { return base_ != no_buffer ? base_ : weights_; }

    BufferId weights_ = no_buffer;
    BufferId base_ = no_buffer;  ///< what others read meanwhile; no_buffer: nothing
    bool own_ = false;           ///< nobody else holds them
    ActionId placing_ = 0;       ///< 0: nothing is under way
    bool placed_ = false;        ///< that is of the first part
    std::vector<Slice> parts_;
};

}  // namespace rubato
