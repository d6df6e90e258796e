// A 4-ary heap that tells its elements where they are, so that any of them can be moved or taken out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rubato::sim {

/// Smallest (key, tie) first. `place(id, position)` is called whenever an element moves; with it the owner finds it
/// again. Shallower than a binary heap: fewer lines of memory are touched.
class MinHeap {
public:
    struct Item {
        double key;
        std::uint64_t tie;
        std::int32_t id;
        bool operator<(const Item& other) const { return key != other.key ? key < other.key : tie < other.tie; }
    };

    bool empty() const { return items_.empty(); }
    std::size_t size() const { return items_.size(); }
    const Item& top() const { return items_.front(); }
    /// In no order that means anything. Keys may be changed as long as their order stays.
    std::vector<Item>& items() { return items_; }
    const std::vector<Item>& items() const { return items_; }
    void clear() { items_.clear(); }

    template <class Place>
    void push(const Item& item, Place&& place) {
        items_.push_back(item);
        rise(items_.size() - 1, item, place);
    }
    /// Takes out what is at `position`.
    template <class Place>
    void erase(std::size_t position, Place&& place) {
        const Item last = items_.back();
        items_.pop_back();
        if (position < items_.size()) settle(position, last, place);
    }
    /// Gives what is at `position` another key.
    template <class Place>
    void update(std::size_t position, const Item& item, Place&& place) {
        settle(position, item, place);
    }

private:
    static constexpr std::size_t arity = 4;

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
};

}  // namespace rubato::sim
