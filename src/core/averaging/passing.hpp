// What a worker has of a broadcast, and what it passes on of it, as a part of a role.
#pragma once

#include "core/averaging/members.hpp"
#include "core/let_go.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rubato {

class Passing {
public:
    Passing() = default;
    /// beside: the worker computes meanwhile.
    Passing(RoleId role, const SpreadSpec& how, bool beside) : role_(role), how_(how), beside_(beside) {}

    /// A piece of broadcast `serial`, of what is `whole` (of no buffer) in all, has come; takes over the reference to
    /// it. False: the worker has it already.
    bool come(const Members& members, std::int64_t serial, const Delivered& event, const Model& model,
              const Slice& whole, Actions& actions) {
        Slice piece = event.payload;
        if (serial < serial_ || (serial == serial_ && have_ >= whole_.count)) {
            let_go(piece.buffer, actions);
            return false;
        }
        if (serial > serial_) {
            drop(actions);  // of one that nobody was left to end
            serial_ = serial;
            have_ = 0;
            whole_ = whole;
            there_ = true;
            sends_.begin(model);
        }
        have_ = piece.count == whole.count ? whole.count : have_ + piece.count;
        members.pass_on(role_, event.from, piece, whole.count, how_, model.group, sends_);
        if (piece.count == whole.count && pieces_.empty() && whole_.buffer == no_buffer && gathering_ == 0) {
            whole_.buffer = piece.buffer;
        } else {
            // Pieces are copied at once: what is held of a channel keeps its sender waiting.
            pieces_.push_back({piece, sends_.left(piece), false});
        }
        return true;
    }
    /// Begins what can be begun now; whether it has sent something.
    template <class NextId>
    bool go_on(NextId&& next_id, Actions& actions) {
        const auto piece = std::find_if(pieces_.begin(), pieces_.end(), [](const Piece& it) { return !it.gathered; });
        if (gathering_ == 0 && piece != pieces_.end()) {
            Mix& mix = actions.add<Mix>();
            mix.id = gathering_ = next_id();
            mix.beside = beside_;
            mix.first = piece->payload.first;
            mix.count = piece->payload.count;
            mix.add(piece->payload.buffer, 1);
            mix.out = std::exchange(whole_.buffer, no_buffer);
        }
        return sends_.go_on(next_id, actions);
    }
    bool is_of(const Taken& event) const { return sends_.is_of(event); }
    void on(const Taken& event, Actions& actions) {
        const BufferId sent = sends_.sends().buffer;
        sends_.on(event);
        for (Piece& it : pieces_)
            if (it.payload.buffer == sent) --it.sends;
        tidy(actions);
    }
    bool is_of(const Mixed& event) const { return gathering_ != 0 && gathering_ == event.id; }
    void on(const Mixed& event, Actions& actions) {
        gathering_ = 0;
        whole_.buffer = event.out;
        std::find_if(pieces_.begin(), pieces_.end(), [](const Piece& it) { return !it.gathered; })->gathered = true;
        tidy(actions);
    }
    void lose(RoleId role, Actions& actions) {
        sends_.lose(role);
        for (Piece& it : pieces_) it.sends = sends_.left(it.payload);
        tidy(actions);
    }
    /// Nothing more is passed on, and what has come is let go once nothing is under way.
    void end(Actions& actions) {
        sends_.end();
        if (sending() || gathering_ != 0) return;
        drop(actions);
    }
    /// What has come is let go.
    void drop(Actions& actions) {
        for (Piece& it : pieces_) let_go(it.payload.buffer, actions);
        pieces_.clear();
        if (there_) let_go(whole_.buffer, actions);
        there_ = false;
    }
    /// All of it is there, and passed on.
    bool done() const { return there_ && have_ >= whole_.count && pieces_.empty() && gathering_ == 0 && !sending(); }
    /// Once done, the whole, with the reference to it.
    Slice take() {
        there_ = false;
        return std::exchange(whole_, {no_buffer, whole_.first, whole_.count});
    }
    /// Some of a broadcast is there, and not all, or not passed on.
    bool busy() const { return there_; }
    bool sending() const { return !sends_.done(); }
    bool gathering() const { return gathering_ != 0; }
    RoleId sends_to() const { return sends_.sends_to(); }
    std::int64_t serial() const { return serial_; }
    bool operator==(const Passing&) const = default;

private:
    struct Piece {
        Slice payload;
        std::int64_t sends = 0;  ///< that are left to do with it
        bool gathered = false;   ///< in the whole
        bool operator==(const Piece&) const = default;
    };
    void tidy(Actions& actions) {
        for (Piece& it : pieces_)
            if (it.gathered && it.sends == 0) let_go(it.payload.buffer, actions);
        std::erase_if(pieces_, [](const Piece& it) { return it.payload.buffer == no_buffer; });
    }

    RoleId role_ = 0;
    SpreadSpec how_;
    bool beside_ = false;
    std::int64_t serial_ = -1;  ///< of the last one
    Slice whole_;               ///< of it; lent while a piece is copied
    std::int64_t have_ = 0;     ///< elements of it
    bool there_ = false;
    std::vector<Piece> pieces_;
    ActionId gathering_ = 0;
    Broadcast sends_;
};

}  // namespace rubato
