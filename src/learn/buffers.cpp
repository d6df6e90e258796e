#include "learn/buffers.hpp"

#include <stdexcept>
#include <string>

namespace rubato::learn {

BufferPool::Handle& BufferPool::handle(BufferId buffer) {
    if (buffer < 0 || static_cast<std::size_t>(buffer) >= handles_.size() ||
        handles_[static_cast<std::size_t>(buffer)].references <= 0)
        throw std::logic_error("buffer " + std::to_string(buffer) + " is used without a reference to it");
    return handles_[static_cast<std::size_t>(buffer)];
}

BufferId BufferPool::new_handle(std::int32_t storage, std::int32_t channel) {
    BufferId id;
    if (free_handles_.empty()) {
        id = static_cast<BufferId>(handles_.size());
        handles_.emplace_back();
    } else {
        id = free_handles_.back();
        free_handles_.pop_back();
    }
    handles_[static_cast<std::size_t>(id)] = {1, storage, channel};
    if (storage >= 0) ++storages_[static_cast<std::size_t>(storage)].handles;
    ++outstanding_;
    return id;
}

BufferId BufferPool::allocate() {
    return new_handle(-1, -1);
}

std::int32_t BufferPool::storage(Handle& handle) {
    if (handle.storage >= 0 || elements_ == 0) return handle.storage;
    if (free_storages_.empty()) {
        handle.storage = static_cast<std::int32_t>(storages_.size());
        storages_.push_back({0, std::make_unique<float[]>(static_cast<std::size_t>(elements_))});
    } else {
        handle.storage = free_storages_.back();
        free_storages_.pop_back();
    }
    storages_[static_cast<std::size_t>(handle.storage)].handles = 1;
    return handle.storage;
}

BufferId BufferPool::share(BufferId buffer, std::int32_t channel) {
    return new_handle(storage(handle(buffer)), channel);
}

std::int32_t BufferPool::release(BufferId buffer) {
    auto& it = handle(buffer);
    if (--it.references > 0) return -1;
    --outstanding_;
    if (it.storage >= 0 && --storages_[static_cast<std::size_t>(it.storage)].handles == 0)
        free_storages_.push_back(it.storage);
    free_handles_.push_back(buffer);
    return it.channel;
}

bool BufferPool::sole(BufferId buffer) const {
    const auto& it = handles_[static_cast<std::size_t>(buffer)];
    return it.references == 1 && (it.storage < 0 || storages_[static_cast<std::size_t>(it.storage)].handles == 1);
}

std::span<float> BufferPool::data(BufferId buffer) {
    const auto index = storage(handle(buffer));
    if (index < 0) return {};
    return {storages_[static_cast<std::size_t>(index)].data.get(), static_cast<std::size_t>(elements_)};
}

}  // namespace rubato::learn
