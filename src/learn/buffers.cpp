#include "learn/buffers.hpp"

#include <algorithm>
#include <iterator>
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

BufferPool::Memory BufferPool::take_memory(int thread) {
    const auto last = free_memory_.rbegin();
    const auto end = last + static_cast<std::ptrdiff_t>(std::min(recent, free_memory_.size()));
    auto found = thread == none ? last : std::ranges::find(last, end, thread, &Memory::thread);
    if (found == end) found = last;
    const Memory memory = *found;
    free_memory_.erase(std::next(found).base());
    return memory;
}

std::span<float> BufferPool::memory(Storage& storage, int thread) {
    Memory& it = storage.memory;
    if (it.begin == nullptr) {
        if (free_memory_.empty()) {
            memory_.push_back(aligned_floats(static_cast<std::size_t>(elements_)));
            free_memory_.push_back({memory_.back().get(), thread});
        }
        it = take_memory(thread);
    }
    if (thread != none) it.thread = thread;
    if (storage.factors != nullptr) multiply_out(storage);
    return {it.begin, static_cast<std::size_t>(elements_)};
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
    factors->multiply_out(0, factors->size(), storage.memory.begin);
    free_factors_.push_back(factors);
    ++multiplied_out_;
}

void BufferPool::leave(std::int32_t storage) {
    auto& left = at(storage);
    if (--left.handles > 0) return;
    if (left.memory.begin != nullptr) free_memory_.push_back(std::exchange(left.memory, {}));
    if (left.factors != nullptr) free_factors_.push_back(std::exchange(left.factors, nullptr));
    free_storages_.push_back(storage);
}

std::span<float> BufferPool::data(BufferId buffer, int thread) {
    const auto index = storage(handle(buffer));
    if (index < 0) return {};
    return memory(at(index), thread);
}

}  // namespace rubato::learn
