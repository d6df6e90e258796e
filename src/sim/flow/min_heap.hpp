// A 4-ary heap that tells its elements where they are, so that any of them can be moved or taken out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rubato::sim {

/// Smallest (key, tie) first. `place(id, position)` is called whenever an element moves; with it the owner finds it
/// again. Shallower than a binary heap: fewer lines of memory are touched.
///
/// As long as elements come in ascending order and leave from the front, which is what equal transfers do, they just
/// stand in a row, and nothing moves.
class MinHeap {
public:
    struct Item {
        double key;
        std::uint64_t tie;
        std::int32_t id;
        bool operator<(const Item& other) const { return key != other.key ? key < other.key : tie < other.tie; }
    };

    bool empty() const { return items_.size() == front_; }
    /// The position of the first of items().
    std::size_t first() const { return front_; }
    std::size_t size() const { return items_.size() - front_; }
    const Item& top() const { return items_[front_]; }
    /// In no order that means anything. Keys may be changed as long as their order stays.
    std::span<Item> items() { return std::span(items_).subspan(front_); }
    void clear() {
        items_.clear();
        front_ = 0;
        in_a_row_ = true;
    }

    template <class Place>
    void push(const Item& item, Place&& place) {
        if (empty()) clear();
        if (in_a_row_ && !empty() && item < items_.back()) leave_row(place);
        items_.push_back(item);
        if (in_a_row_)
            place(item.id, static_cast<std::int32_t>(items_.size() - 1));
        else
            rise(items_.size() - 1, item, place);
    }
    /// Takes out the smallest.
    template <class Place>
    void pop(Place&& place) {
        erase(front_, place);
    }
    /// Takes out what is at `position`.
    template <class Place>
    void erase(std::size_t position, Place&& place) {
        if (in_a_row_) {
            if (position == front_) {
                ++front_;
                if (front_ >= room_max && 2 * front_ >= items_.size()) close_up(place);
                return;
            }
            position -= front_;
            leave_row(place);
        }
        const Item last = items_.back();
        items_.pop_back();
        if (position < items_.size()) settle(position, last, place);
    }
    /// Gives what is at `position` another key.
    template <class Place>
    void update(std::size_t position, const Item& item, Place&& place) {
        if (in_a_row_) {
            if (size() == 1) {
                items_[front_] = item;
                return;
            }
            position -= front_;
            leave_row(place);
        }
        settle(position, item, place);
    }

private:
    static constexpr std::size_t arity = 4;
    static constexpr std::size_t room_max = 32;  ///< places before the front of a row, unless most are in use

    /// Closes the room before the front.
    template <class Place>
    void close_up(Place& place) {
        items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(front_));
        front_ = 0;
        for (std::size_t at = 0; at < items_.size(); ++at) place(items_[at].id, static_cast<std::int32_t>(at));
    }
    /// A row is a heap already.
    template <class Place>
    void leave_row(Place& place) {
        if (front_ > 0) close_up(place);
        in_a_row_ = false;
    }
    template <class Place>
    void settle(std::size_t at, const Item& item, Place& place) {
        if (at > 0 && item < items_[(at - 1) / arity])
            rise(at, item, place);
        else
            sink(at, item, place);
    }
    template <class Place>
    void rise(std::size_t at, const Item& item, Place& place) {
        while (at > 0) {
            const std::size_t parent = (at - 1) / arity;
            if (!(item < items_[parent])) break;
            put(at, items_[parent], place);
            at = parent;
        }
        put(at, item, place);
    }
    template <class Place>
    void sink(std::size_t at, const Item& item, Place& place) {
        while (true) {
            const std::size_t first = arity * at + 1;
            if (first >= items_.size()) break;
            const std::size_t end = first + arity < items_.size() ? first + arity : items_.size();
            std::size_t least = first;
            for (std::size_t child = first + 1; child < end; ++child)
                if (items_[child] < items_[least]) least = child;
            if (!(items_[least] < item)) break;
            put(at, items_[least], place);
            at = least;
        }
        put(at, item, place);
    }
    template <class Place>
    void put(std::size_t at, const Item& item, Place& place) {
        items_[at] = item;
        place(item.id, static_cast<std::int32_t>(at));
    }

    std::vector<Item> items_;
    std::size_t front_ = 0;  ///< of the row; 0 in a heap
    bool in_a_row_ = true;
};

}  // namespace rubato::sim
