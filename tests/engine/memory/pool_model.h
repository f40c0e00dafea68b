// PoolModel: tracks allocations of a test, and checks a pool's snapshot and statistics against them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>

#include "engine/memory/allocator.h"

namespace tt {

class PoolModel {
 public:
  // `merged`: whether adjacent free blocks are always merged (false if freed blocks may be in the SizeClassCache).
  explicit PoolModel(bool merged = true) : merged_(merged) {}

  void add(const void* p, size_t bytes) {
    ASSERT_NE(p, nullptr);
    auto [at, is_new] = live_.emplace(static_cast<const char*>(p), bytes);
    ASSERT_TRUE(is_new) << "handed out twice";
    ASSERT_TRUE(at == live_.begin() || std::prev(at)->first + std::prev(at)->second <= at->first) << "blocks overlap";
    ASSERT_TRUE(std::next(at) == live_.end() || at->first + bytes <= std::next(at)->first) << "blocks overlap";
    requested_ += bytes;
  }
  void remove(const void* p) {
    auto at = live_.find(static_cast<const char*>(p));
    ASSERT_NE(at, live_.end());
    requested_ -= at->second;
    live_.erase(at);
  }
  size_t size() const { return live_.size(); }

  // `taken`: bytes obtained from the system.
  void check(const Allocator& pool, uint64_t taken) const {
    const AllocatorStats stats = pool.stats();
    ASSERT_EQ(stats.all.requested.now, requested_);
    ASSERT_EQ(stats.all.reserved.now, taken);
    uint64_t total = 0, in_use = 0, active = 0, split = 0;
    const std::vector<BlockInfo> blocks = pool.snapshot();
    auto next = live_.begin();
    for (size_t i = 0; i < blocks.size(); ++i) {
      const BlockInfo& block = blocks[i];
      const bool after = i > 0 && touches(blocks[i - 1], block);
      const bool before = i + 1 < blocks.size() && touches(block, blocks[i + 1]);
      ASSERT_TRUE(i == 0 || end_of(blocks[i - 1]) <= begin_of(block)) << "blocks overlap";
      ASSERT_FALSE(merged_ && after && is_free(block) && is_free(blocks[i - 1])) << "free neighbours did not merge";
      total += block.size;
      if (is_free(block) && (after || before)) split += block.size;
      if (!is_free(block)) active += block.size;
      if (!block.in_use) continue;
      ASSERT_NE(next, live_.end());
      ASSERT_EQ(next->first, begin_of(block)) << "an allocated block is missing in the snapshot";
      ASSERT_LE(next->second, block.size);
      in_use += block.size;
      ++next;
    }
    ASSERT_EQ(next, live_.end()) << "an allocated block is missing in the snapshot";
    ASSERT_EQ(total, stats.all.reserved.now) << "the snapshot misses reserved bytes";
    ASSERT_EQ(in_use, stats.all.allocated.now);
    ASSERT_EQ(active, stats.all.active.now);
    ASSERT_EQ(merged_ ? split : stats.all.inactive_split.now, stats.all.inactive_split.now);
    for (Level PoolStats::*level : {&PoolStats::requested, &PoolStats::allocated, &PoolStats::active,
                                    &PoolStats::inactive_split, &PoolStats::reserved}) {
      ASSERT_EQ((stats.small.*level).now + (stats.large.*level).now, (stats.all.*level).now);
      ASSERT_LE((stats.all.*level).now, (stats.all.*level).peak);
    }
  }

 private:
  static const char* begin_of(const BlockInfo& block) { return static_cast<const char*>(block.segment) + block.offset; }
  static const char* end_of(const BlockInfo& block) { return begin_of(block) + block.size; }
  static bool is_free(const BlockInfo& block) { return !block.in_use && !block.waiting; }
  static bool touches(const BlockInfo& a, const BlockInfo& b) {
    return a.segment == b.segment && end_of(a) == begin_of(b);
  }

  const bool merged_;
  std::map<const char*, size_t> live_;
  uint64_t requested_ = 0;
};

}  // namespace tt
