// DevicePool: a caching pool configured as a GPU backend's, over memory and streams controlled by a test.
#pragma once

#include <memory>
#include <string>

#include "engine/memory/alloc_scope.h"
#include "engine/memory/caching_pool.h"
#include "engine/schema/error.h"
#include "tests/engine/memory/bounded_memory.h"
#include "tests/engine/memory/exact_sizes.h"
#include "tests/engine/memory/test_streams.h"

namespace tt {

constexpr size_t kMiB = size_t{1} << 20;

struct DevicePool {
  explicit DevicePool(const std::string& conf = "", size_t capacity = 65536 * kMiB)
      : DevicePool(conf, std::make_unique<BoundedMemory>(capacity), std::make_unique<BoundedRanges>(capacity)) {}

  // Allocates as a storage does, for the thread's current account and source line, but without a tenant.
  char* allocate(size_t bytes, Stream& on) {
    const AllocScope& scope = AllocScope::current();
    return static_cast<char*>(pool.allocate(bytes, {&on, kNoTenant, &scope.account, scope.site}));
  }
  char* allocate(size_t bytes) { return allocate(bytes, stream); }
  void deallocate(void* p, size_t bytes) { pool.deallocate(p, bytes); }
  AllocatorStats stats() const { return pool.stats(); }
  std::string error_of(size_t bytes) {
    try {
      allocate(bytes);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory);
      return e.message();
    }
    return "no error";
  }

  std::shared_ptr<TestEvents::State> events = std::make_shared<TestEvents::State>();
  BoundedMemory* memory;
  BoundedRanges* ranges;
  CachingPool pool;
  TestStream stream{1}, other{2}, third{3};

 private:
  DevicePool(const std::string& conf, std::unique_ptr<BoundedMemory> segments, std::unique_ptr<BoundedRanges> addresses)
      : memory(segments.get()),
        ranges(addresses.get()),
        pool({DeviceType::kCUDA, 0}, parts(std::move(segments), std::move(addresses)), sizes(),
             parse_alloc_conf(conf)) {}
  PoolParts parts(std::unique_ptr<BoundedMemory> segments, std::unique_ptr<BoundedRanges> addresses) {
    PoolParts parts;
    parts.segments = std::move(segments);
    parts.events = std::make_unique<TestEvents>(events);
    parts.ranges = std::move(addresses);
    return parts;
  }
  static PoolSizes sizes() {
    PoolSizes sizes = exact_sizes();
    sizes.granule = 512;
    sizes.page = 2 * kMiB;
    return sizes;
  }
};

}  // namespace tt
