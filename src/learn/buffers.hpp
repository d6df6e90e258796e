// The drivers' buffer pool: what the BufferIds of the engine stand for.
//
// A buffer id is a handle: it belongs to one role and counts that role's references and those of its actions. Several
// handles may share one storage (a model on its way to many workers); a handle that was delivered occupies an inbox
// slot of its channel until its last reference ends. A handle gets its storage when its contents are first asked for,
// so gradients that wait to be computed take no memory. In a timing-only run there is no storage and nothing is
// allocated.
#pragma once

#include "core/types.hpp"

#include <memory>
#include <span>
#include <vector>

namespace rubato::learn {

/// Not thread-safe. elements: length of each storage; 0: handles only.
class BufferPool {
public:
    explicit BufferPool(std::int64_t elements) : elements_(elements) {}

    /// A new handle with one reference on contents of its own (unspecified).
    BufferId allocate();
    /// A new handle with one reference on the contents of `buffer`, occupying a slot of `channel` (-1: none).
    BufferId share(BufferId buffer, std::int32_t channel);
    void retain(BufferId buffer) { ++handle(buffer).references; }
    /// Ends one reference. Returns the channel whose slot became free, or -1. Throws std::logic_error where there is
    /// none left to end.
    std::int32_t release(BufferId buffer);
    /// Whether the handle has one reference and its storage no other handle: then it may be written in place.
    bool sole(BufferId buffer) const;
    /// Contents of a handle: [elements]; empty in a timing-only run. Stays valid while anyone holds it.
    std::span<float> data(BufferId buffer);
    /// References that have not ended; 0 when all roles have finished.
    std::int64_t outstanding() const { return outstanding_; }

private:
    struct Handle {
        std::int32_t references = 0;
        std::int32_t storage = -1;
        std::int32_t channel = -1;
    };
    struct Storage {
        std::int32_t handles = 0;
        std::unique_ptr<float[]> data;
    };
    Handle& handle(BufferId buffer);
    /// The storage of a handle, given now if it has none.
    std::int32_t storage(Handle& handle);
    BufferId new_handle(std::int32_t storage, std::int32_t channel);

    std::int64_t elements_ = 0;
    std::int64_t outstanding_ = 0;
    std::vector<Handle> handles_;
    std::vector<BufferId> free_handles_;
    std::vector<Storage> storages_;
    std::vector<std::int32_t> free_storages_;
};

}  // namespace rubato::learn
