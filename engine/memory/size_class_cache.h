// SizeClassCache: recently freed blocks, listed by exact size for fast reuse.
//
// Used by CachingPool under its lock, for most small allocations. The heap counts cached blocks as in use, so it
// neither splits nor merges them. The pool flushes the cache before it obtains more memory from the system.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "engine/memory/allocator.h"

namespace tt {

class SizeClassCache {
 public:
  struct Entry {
    void* block = nullptr;      // null if none
    Tenant tenant = kNoTenant;  // the tenant whose bytes the block contains
  };

  // Caches blocks of up to `limit` bytes in steps of `granule`, at most `capacity` bytes in total.
  SizeClassCache(size_t limit, size_t granule, size_t capacity)
      : shift_(std::countr_zero(granule)), capacity_(capacity), lists_((limit >> shift_) + 1) {}

  // Whether blocks of this size can be cached.
  bool can_cache(size_t size) const { return (size >> shift_) < lists_.size() && capacity_ > 0; }
  // Removes and returns a cached block of exactly `size` bytes, a multiple of the granule. The entry's block is null if
  // there is none.
  Entry take(size_t size) {
    size_t i = size >> shift_;
    if (i >= lists_.size() || lists_[i].empty()) return {};
    const Entry entry = lists_[i].back();
    lists_[i].pop_back();
    held_ -= size;
    return entry;
  }
  // Returns false if the block is too large or the cache is full.
  bool put(void* block, size_t size, Tenant tenant) {
    size_t i = size >> shift_;
    if (i >= lists_.size() || held_ + size > capacity_) return false;
    lists_[i].push_back({block, tenant});
    held_ += size;
    return true;
  }
  size_t held() const { return held_; }

  template <typename F>
  void for_each(F visit) const {
    for (const auto& list : lists_) std::for_each(list.begin(), list.end(), visit);
  }
  void clear() {
    for (auto& list : lists_) list.clear();
    held_ = 0;
  }

 private:
  int shift_;  // log2 of the granule
  size_t capacity_;
  size_t held_ = 0;
  // Last in, first out: the block freed last is probably still in the CPU's caches.
  std::vector<std::vector<Entry>> lists_;
};

}  // namespace tt
