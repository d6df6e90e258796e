#include "learn/buffers.hpp"

#include <stdexcept>
#include <string>

namespace rubato::learn {

void BufferPool::refuse(BufferId buffer) {
    throw std::logic_error("buffer " + std::to_string(buffer) + " is used without a reference to it");
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

void BufferPool::leave(std::int32_t storage) {
    if (--storages_[static_cast<std::size_t>(storage)].handles == 0) free_storages_.push_back(storage);
}

std::span<float> BufferPool::data(BufferId buffer) {
    const auto index = storage(handle(buffer));
    if (index < 0) return {};
    return {storages_[static_cast<std::size_t>(index)].data.get(), static_cast<std::size_t>(elements_)};
}

}  // namespace rubato::learn
