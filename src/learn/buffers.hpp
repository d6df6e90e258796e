// The drivers' buffer pool: what the BufferIds of the engine stand for.
//
// A buffer id is a handle: it belongs to one role and counts that role's references and those of its actions. Several
// handles may share one storage (a model on its way to many workers); a handle that was delivered occupies an inbox
// slot of its channel until its last reference ends. A storage gets its memory when its contents are first asked for,
// so gradients that wait to be computed take none, and the memory that was given up last, which the caches still hold,
// is given out first. In a timing-only run there is no storage and nothing is allocated.
#pragma once

#include "core/types.hpp"
#include "learn/aligned.hpp"
#include "learn/factors.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rubato::learn {

/// Not thread-safe. elements: length of each storage; 0: handles only. Its members are called several times a message,
/// hence inline.
class BufferPool {
public:
    explicit BufferPool(std::int64_t elements) : elements_(elements) {}

    std::int64_t elements() const { return elements_; }

    /// What handles share.
    struct Contents {
        std::int32_t storage = -1;
        bool operator==(const Contents&) const = default;
    };

    /// A new handle with one reference on contents of its own (unspecified), occupying a slot of `channel` (-1: none).
    BufferId allocate(std::int32_t channel = -1) { return new_handle(-1, channel); }
    /// A new handle with one reference on the contents of `buffer`, occupying a slot of `channel` (-1: none).
    BufferId share(BufferId buffer, std::int32_t channel) {
        auto& it = handle(buffer);
        return new_handle(elements_ == 0 ? -1 : storage(it), channel);
    }
    void retain(BufferId buffer) { ++handle(buffer).references; }
    /// Ends one reference. Returns the channel whose slot became free, or -1. Throws std::logic_error where there is
    /// none left to end.
    std::int32_t release(BufferId buffer) {
        auto& it = handle(buffer);
        if (--it.references > 0) return -1;
        --outstanding_;
        if (it.storage >= 0) leave(it.storage);
        free_handles_.push_back(buffer);
        return it.channel;
    }
    /// Whether the handle has one reference and its storage no other handle: then it may be written in place.
    bool sole(BufferId buffer) const {
        const auto& it = handles_[static_cast<std::size_t>(buffer)];
        return it.references == 1 && (it.storage < 0 || storages_[static_cast<std::size_t>(it.storage)].handles == 1);
    }
    /// Contents of a handle: [elements]; empty in a timing-only run. Stays valid while anyone holds it.
    std::span<float> data(BufferId buffer) {
        const auto index = storage(handle(buffer));
        return index < 0 ? std::span<float>{} : memory(at(index));
    }
    /// Holds the contents of a handle, also after its last reference has ended; occupies neither handle nor slot.
    Contents hold(BufferId buffer) {
        const auto held = storage(handle(buffer));
        if (held >= 0) ++at(held).handles;
        return {held};
    }
    /// Once more.
    void hold(Contents held) { ++at(held.storage).handles; }
    void drop(Contents held) {
        if (held.storage >= 0) leave(held.storage);
    }
    /// Whether a handle stands for these contents.
    bool stands_for(BufferId buffer, Contents held) const {
        return handles_[static_cast<std::size_t>(buffer)].storage == held.storage;
    }
    /// Whether nothing else leads to these contents.
    bool sole(Contents held) const { return storages_[static_cast<std::size_t>(held.storage)].handles == 1; }
    std::span<float> data(Contents held) { return memory(at(held.storage)); }
    /// Factors to be filled in, which are the contents of the handle from now on, until somebody asks for its data():
    /// then they are multiplied out.
    Factors& factors(BufferId buffer);
    /// The contents as they are, where nobody has asked for data(); otherwise null.
    const Factors* factors(Contents held) const { return storages_[static_cast<std::size_t>(held.storage)].factors; }
    /// How often factors were multiplied out.
    std::int64_t multiplied_out() const { return multiplied_out_; }
    /// Gives the memory of `from`, with what is in it, to `to`; what `from` holds is unspecified then.
    void move(Contents from, Contents to) { std::swap(at(from.storage).memory, at(to.storage).memory); }

    /// References that have not ended; 0 when all roles have finished.
    std::int64_t outstanding() const { return outstanding_; }

private:
    struct Handle {
        std::int32_t references = 0;
        std::int32_t storage = -1;
        std::int32_t channel = -1;
    };
    struct Storage {
        std::int32_t handles = 0;    ///< and holds
        float* memory = nullptr;     ///< null until the contents are asked for
        Factors* factors = nullptr;  ///< the contents, instead
    };

    Handle& handle(BufferId buffer) {
        if (static_cast<std::size_t>(buffer) >= handles_.size() ||
            handles_[static_cast<std::size_t>(buffer)].references <= 0)
            refuse(buffer);
        return handles_[static_cast<std::size_t>(buffer)];
    }
    BufferId new_handle(std::int32_t storage, std::int32_t channel) {
        ++outstanding_;
        if (storage >= 0) ++storages_[static_cast<std::size_t>(storage)].handles;
        if (free_handles_.empty()) {
            handles_.push_back({1, storage, channel});
            return static_cast<BufferId>(handles_.size() - 1);
        }
        const BufferId id = free_handles_.back();
        free_handles_.pop_back();
        handles_[static_cast<std::size_t>(id)] = {1, storage, channel};
        return id;
    }
    [[noreturn]] static void refuse(BufferId buffer);
    Storage& at(std::int32_t storage) { return storages_[static_cast<std::size_t>(storage)]; }
    /// The storage of a handle, given now if it has none.
    std::int32_t storage(Handle& handle);
    std::span<float> memory(Storage& storage);
    void multiply_out(Storage& storage);
    void leave(std::int32_t storage);

    std::int64_t elements_ = 0;
    std::int64_t outstanding_ = 0;
    std::vector<Handle> handles_;
    std::vector<BufferId> free_handles_;
    std::vector<Storage> storages_;
    std::vector<std::int32_t> free_storages_;
    std::vector<AlignedFloats> memory_;
    std::vector<float*> free_memory_;  ///< the last one was given up last
    std::vector<std::unique_ptr<Factors>> factors_;
    std::vector<Factors*> free_factors_;
    std::int64_t multiplied_out_ = 0;
};

}  // namespace rubato::learn
