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
        storages_.push_back({});
    } else {
        handle.storage = free_storages_.back();
        free_storages_.pop_back();
    }
    at(handle.storage).handles = 1;
    return handle.storage;
}

std::span<float> BufferPool::memory(Storage& storage) {
    if (storage.memory == nullptr) {
        if (free_memory_.empty()) {
            memory_.push_back(aligned_floats(static_cast<std::size_t>(elements_)));
            free_memory_.push_back(memory_.back().get());
        }
        storage.memory = free_memory_.back();
        free_memory_.pop_back();
    }
    if (storage.factors != nullptr) multiply_out(storage);
    return {storage.memory, static_cast<std::size_t>(elements_)};
}

Factors& BufferPool::factors(BufferId buffer) {
    Storage& it = at(storage(handle(buffer)));
    if (it.factors != nullptr) return *it.factors;
    if (free_factors_.empty()) {
        factors_.push_back(std::make_unique<Factors>());
        free_factors_.push_back(factors_.back().get());
    }
    it.factors = free_factors_.back();
    free_factors_.pop_back();
    return *it.factors;
}

void BufferPool::multiply_out(Storage& storage) {
    Factors* factors = std::exchange(storage.factors, nullptr);
    factors->multiply_out(0, factors->size(), storage.memory);
    free_factors_.push_back(factors);
    ++multiplied_out_;
}

void BufferPool::leave(std::int32_t storage) {
    auto& left = at(storage);
    if (--left.handles > 0) return;
    if (left.memory != nullptr) free_memory_.push_back(std::exchange(left.memory, nullptr));
    if (left.factors != nullptr) free_factors_.push_back(std::exchange(left.factors, nullptr));
    free_storages_.push_back(storage);
}

}  // namespace rubato::learn
