// BoundedMemory, BoundedRanges: system memory with a limit, which counts allocated bytes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <optional>

#include "engine/device/address_range_allocator.h"
#include "engine/device/segment_source.h"
#include "engine/memory/system_memory.h"

namespace tt {

class BoundedMemory final : public SegmentSource {
 public:
  explicit BoundedMemory(size_t capacity = SIZE_MAX) : capacity_(capacity) {}
  void* map(size_t bytes) override {
    if (bytes > capacity_ - taken) return nullptr;
    taken += bytes;
    return memory_.map(bytes);
  }
  void unmap(void* segment, size_t bytes) override {
    taken -= bytes;
    memory_.unmap(segment, bytes);
  }
  void discard(void* p, size_t bytes) override {
    discarded += bytes;
    memory_.discard(p, bytes);
  }
  std::optional<SystemMemoryInfo> info() override {
    if (capacity_ == SIZE_MAX) return std::nullopt;
    return SystemMemoryInfo{capacity_ - taken, capacity_};
  }
  size_t taken = 0;
  size_t discarded = 0;

 private:
  size_t capacity_;
  SystemMemory memory_;
};

class BoundedRanges final : public AddressRangeAllocator {
 public:
  explicit BoundedRanges(size_t capacity) : capacity_(capacity) {}
  size_t range_bytes() override { return capacity_ + capacity_ / 8; }
  void* reserve(size_t bytes) override {
    void* range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return nullptr;
    ++ranges;
    return range;
  }
  void release(void* range, size_t bytes) override {
    --ranges;
    EXPECT_EQ(munmap(range, bytes), 0);
  }
  bool map(void* at, size_t bytes) override {
    if (bytes > capacity_ - taken) return false;
    taken += bytes;
    EXPECT_TRUE(pieces_.emplace(at, bytes).second);
    return mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0;
  }
  void unmap(void* at, size_t bytes, uintptr_t) override {
    taken -= bytes;
    auto piece = pieces_.find(at);
    ASSERT_NE(piece, pieces_.end());
    EXPECT_EQ(piece->second, bytes);
    pieces_.erase(piece);
    EXPECT_EQ(mprotect(at, bytes, PROT_NONE), 0);
  }
  size_t taken = 0;
  int ranges = 0;

 private:
  size_t capacity_;
  std::map<void*, size_t> pieces_;
};

}  // namespace tt
