// A block that a pool hands to a tenant contains no data of other tenants.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "engine/memory/caching_pool.h"
#include "engine/session/context.h"
#include "tests/engine/memory/device_pool.h"
#include "tests/engine/memory/exact_sizes.h"

namespace tt {
namespace {

constexpr Tenant kAnna = 1, kBert = 2;

bool is_zero(const char* p, size_t bytes) {
  return std::all_of(p, p + bytes, [](char byte) { return byte == 0; });
}

struct HostPool {
  CachingPool pool{Device{}, std::make_unique<SystemMemory>(), exact_sizes()};
  char* allocate(size_t bytes, Tenant tenant) { return static_cast<char*>(pool.allocate(bytes, {nullptr, tenant})); }
  // Leaves free blocks of `bytes` that are filled with `tenant`'s marks.
  char* use(size_t bytes, Tenant tenant) {
    char* p = allocate(bytes, tenant);
    std::memset(p, 'A' + static_cast<int>(tenant), bytes);
    pool.deallocate(p, bytes, tenant);
    return p;
  }
};

class TenantSizes : public testing::TestWithParam<size_t> {};

TEST_P(TenantSizes, ZeroesBlockOfAnotherTenant) {
  HostPool pool;
  const size_t bytes = GetParam();
  char* before = pool.use(bytes, kAnna);
  char* p = pool.allocate(bytes, kBert);
  EXPECT_EQ(p, before) << "the test requires that the block is reused";
  EXPECT_TRUE(is_zero(p, bytes));
  pool.pool.deallocate(p, bytes, kBert);
}

TEST_P(TenantSizes, KeepsBlockOfSameTenant) {
  HostPool pool;
  const size_t bytes = GetParam();
  pool.use(bytes, kAnna);
  char* p = pool.allocate(bytes, kAnna);
  EXPECT_EQ(p[0], 'A' + static_cast<int>(kAnna));
  EXPECT_EQ(p[bytes - 1], 'A' + static_cast<int>(kAnna));
  pool.pool.deallocate(p, bytes, kAnna);
}

// A block is larger than the request; its end may be allocated later.
TEST_P(TenantSizes, ZeroesToEndOfBlock) {
  HostPool pool;
  const size_t bytes = GetParam(), rounded = (bytes + 63) / 64 * 64;
  pool.use(rounded, kAnna);
  pool.pool.deallocate(pool.allocate(rounded - 63, kBert), rounded - 63, kBert);
  char* p = pool.allocate(rounded, kBert);
  EXPECT_TRUE(is_zero(p, rounded));
  pool.pool.deallocate(p, rounded, kBert);
}

INSTANTIATE_TEST_SUITE_P(AllClasses, TenantSizes,
                         testing::Values(1, 64, 1000, 64 << 10, (64 << 10) + 1, 1 << 20, (1 << 20) + 5, 12 << 20));

TEST(TenantTest, MergedBlockIsZeroed) {
  HostPool pool;
  constexpr size_t kHalf = 512 << 10;
  char* a = pool.allocate(kHalf, kAnna);
  char* b = pool.allocate(kHalf, kBert);
  ASSERT_EQ(b, a + kHalf);
  std::memset(a, 'a', kHalf);
  std::memset(b, 'b', kHalf);
  pool.pool.deallocate(a, kHalf, kAnna);
  pool.pool.deallocate(b, kHalf, kBert);
  for (Tenant tenant : {kAnna, kBert}) {
    char* both = pool.allocate(2 * kHalf, tenant);
    ASSERT_EQ(both, a);
    EXPECT_TRUE(is_zero(both, 2 * kHalf));
    std::memset(both, 'c', 2 * kHalf);
    pool.pool.deallocate(both, 2 * kHalf, tenant);
  }
}

TEST(TenantTest, SplitBlockKeepsItsTenant) {
  HostPool pool;
  pool.use(1 << 20, kAnna);
  char* p = pool.allocate(1000, kBert);
  char* q = pool.allocate(100 << 10, kBert);  // allocated from the rest of the same block
  EXPECT_TRUE(is_zero(p, 1000));
  EXPECT_TRUE(is_zero(q, 100 << 10));
  pool.pool.deallocate(p, 1000, kBert);
  pool.pool.deallocate(q, 100 << 10, kBert);
}

TEST(TenantTest, BlockFreedWithoutTenantIsZeroed) {
  HostPool pool;
  for (size_t bytes : {size_t{100}, size_t{3} << 20}) {
    char* p = pool.allocate(bytes, kAnna);
    std::memset(p, 'x', bytes);
    pool.pool.deallocate(p, bytes);  // this thread has no current tenant
    p = pool.allocate(bytes, kAnna);
    EXPECT_TRUE(is_zero(p, bytes));
    pool.pool.deallocate(p, bytes, kAnna);
  }
}

TEST(TenantTest, StoragesPassTenantToPool) {
  Context anna, bert;
  anna.account = std::make_shared<Account>("session 1");
  bert.account = std::make_shared<Account>("session 2");
  ASSERT_NE(anna.account->tenant(), bert.account->tenant());
  for (size_t bytes : {size_t{40}, size_t{4000}, size_t{200} << 10, size_t{5} << 20}) {
    void* before = nullptr;
    {
      ContextScope scope(&anna);
      auto storage = make_ref<Storage>(Device{}, bytes);
      before = storage->data();
      std::memset(before, 'x', bytes);
    }
    ContextScope scope(&bert);
    auto storage = make_ref<Storage>(Device{}, bytes);
    EXPECT_EQ(storage->data(), before);
    EXPECT_TRUE(is_zero(static_cast<char*>(storage->data()), bytes));
  }
}

TEST(TenantTest, EndedTenantReleasesSegments) {
  HostPool pool;
  std::vector<char*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool.allocate(32 << 20, i == 0 ? kBert : kAnna));
  for (int i = 0; i < 4; ++i) pool.pool.deallocate(blocks[static_cast<size_t>(i)], 32 << 20, i == 0 ? kBert : kAnna);
  ASSERT_EQ(pool.pool.stats().all.reserved.now, 128u << 20);
  pool.pool.forget(kAnna);
  EXPECT_EQ(pool.pool.stats().all.reserved.now, 32u << 20);
}

// Returns the first byte that is neither 0 nor `mark`, or null. Compares chunks, most of which have one value: a loop
// over bytes takes minutes in a test, which is compiled without optimisation, under a sanitizer.
const char* find_foreign(const char* p, size_t bytes, char mark) {
  const std::string zeros(4096, '\0'), marks(zeros.size(), mark);
  const auto is_foreign = [mark](char byte) { return byte != 0 && byte != mark; };
  for (const char* const end = p + bytes; p != end;) {
    const size_t chunk = std::min(zeros.size(), static_cast<size_t>(end - p));
    if (std::memcmp(p, zeros.data(), chunk) != 0 && std::memcmp(p, marks.data(), chunk) != 0) {
      const char* found = std::find_if(p, p + chunk, is_foreign);
      if (found != p + chunk) return found;
    }
    p += chunk;
  }
  return nullptr;
}

// Each tenant fills its blocks with its own mark, and must find only that mark and zeros.
template <typename Allocate, typename Free, typename Collect>
void run_trace(Allocate allocate, Free free, Collect collect) {
  struct Live {
    char* p;
    size_t bytes;
    Tenant tenant;
  };
  std::mt19937 random(5);
  std::vector<Live> live;
  for (int step = 0; step < 6000; ++step) {
    if (step % 1000 == 999) collect();
    if (live.size() < 20 || (live.size() < 60 && random() % 2)) {
      const auto bytes = static_cast<size_t>(std::exp2(std::uniform_real_distribution<double>(0, 21)(random)));
      const Tenant tenant = 1 + random() % 3;
      char* p = allocate(bytes, tenant);
      ASSERT_EQ(static_cast<const void*>(find_foreign(p, bytes, static_cast<char>(tenant))), nullptr)
          << "step " << step << ", " << bytes << " bytes";
      std::memset(p, static_cast<int>(tenant), bytes);
      live.push_back({p, bytes, tenant});
    } else {
      std::swap(live[random() % live.size()], live.back());
      free(live.back().p, live.back().bytes, live.back().tenant);
      live.pop_back();
    }
  }
  for (const Live& block : live) free(block.p, block.bytes, block.tenant);
}

TEST(TenantTest, RandomRequestsExposeNoForeignBytes) {
  HostPool pool;
  run_trace([&](size_t bytes, Tenant tenant) { return pool.allocate(bytes, tenant); },
            [&](void* p, size_t bytes, Tenant tenant) { pool.pool.deallocate(p, bytes, tenant); },
            [&] { pool.pool.empty_cache(); });
}

TEST(TenantTest, RandomRequestsExposeNoForeignBytesOfDevice) {
  for (const char* conf : {"", "expandable_segments:True", "max_split_size_mb:21"}) {
    DevicePool pool(conf, 1024 * kMiB);
    run_trace(
        [&](size_t bytes, Tenant tenant) {
          return static_cast<char*>(pool.pool.allocate(bytes, {&pool.stream, tenant}));
        },
        [&](void* p, size_t bytes, Tenant tenant) { pool.pool.deallocate(p, bytes, tenant); },
        [&] { pool.pool.empty_cache(); });
  }
}

}  // namespace
}  // namespace tt
