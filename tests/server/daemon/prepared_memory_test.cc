// The memory of a process that takes over sessions: its pages are there before the sessions are, and contain zeros.
#include "server/daemon/prepared_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "engine/device/devices.h"
#include "engine/memory/account.h"
#include "engine/memory/alloc_scope.h"
#include "engine/memory/asan.h"
#include "engine/tensor/storage.h"
#include "server/daemon/backends.h"

namespace tt::server {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kPage = 4096;

Allocator& pool() { return Devices::instance().allocator(Device()); }

class PreparedMemoryTest : public ::testing::Test {
 protected:
  PreparedMemoryTest() {
    register_backends(1, 0);
    pool().empty_cache();
  }
  static Clock::time_point soon() { return Clock::now() + std::chrono::seconds(60); }
};

bool is_resident(const void* data, size_t bytes) {
  char* const from = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(data) / kPage * kPage);
  std::vector<unsigned char> pages((static_cast<const char*>(data) + bytes - from + kPage - 1) / kPage);
  EXPECT_EQ(mincore(from, pages.size() * kPage, pages.data()), 0);
  return std::all_of(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
}

TEST_F(PreparedMemoryTest, HasWhatIsInUse) {
  if (kRedZone > 0) GTEST_SKIP() << "the blocks of a sanitized pool are larger than the sizes in use";
  std::string description;
  {
    const Storage a(Device(), 3 * kMiB), b(Device(), 3 * kMiB), c(Device(), 30 * kMiB), small(Device(), 70'000);
    description = memory_in_use();
  }
  EXPECT_NE(description.find("x2"), std::string::npos) << description;
  pool().empty_cache();
  const uint64_t before = pool().stats().all.reserved.now;
  { EXPECT_GE(PreparedMemory(description, soon()).bytes(), 36 * kMiB + 70'000); }
  const uint64_t reserved = pool().stats().all.reserved.now, calls = pool().stats().system_allocations;
  EXPECT_GE(reserved, before + 36 * kMiB);
  const Tenant tenant = Account::new_tenant();
  std::vector<std::pair<void*, size_t>> blocks;
  for (const size_t size : {3 * kMiB, 3 * kMiB, 30 * kMiB, size_t{70'000}}) {
    void* const data = pool().allocate(size, {.tenant = tenant});
    blocks.emplace_back(data, size);
    EXPECT_TRUE(is_resident(data, size)) << size;
    EXPECT_TRUE(
        std::all_of(static_cast<char*>(data), static_cast<char*>(data) + size, [](char each) { return each == 0; }));
  }
  EXPECT_EQ(pool().stats().system_allocations, calls);
  for (const auto& [data, size] : blocks) pool().deallocate(data, size, tenant);
}

TEST_F(PreparedMemoryTest, NeverContainsWhatATenantHasWritten) {
  const Tenant first = Account::new_tenant();
  void* const data = pool().allocate(3 * kMiB, {.tenant = first});
  std::fill_n(static_cast<char*>(data), 3 * kMiB, 'x');
  pool().deallocate(data, 3 * kMiB, first);
  { EXPECT_EQ(PreparedMemory("0,3145728x1", soon()).bytes(), 3 * kMiB); }
  void* const again = pool().allocate(3 * kMiB, {.tenant = Account::new_tenant()});
  EXPECT_TRUE(std::all_of(static_cast<char*>(again), static_cast<char*>(again) + 3 * kMiB,
                          [](char each) { return each == 0; }));
  pool().deallocate(again, 3 * kMiB);
}

TEST_F(PreparedMemoryTest, StopsAtTheDeadline) {
  EXPECT_EQ(PreparedMemory("0,1048577x1000000000", Clock::now()).bytes(), 0u);
  EXPECT_EQ(pool().stats().all.allocated.now, 0u);
}

TEST_F(PreparedMemoryTest, IgnoresWhatItCannotReadOrObtain) {
  for (const char* text : {"", "x", "nonsense", "0", "0,", "0,x", "0,12x", "0,0x5", "-1", "0,4611686018427387904x1",
                           "0,18446744073709551615x2"}) {
    EXPECT_EQ(PreparedMemory(text, soon()).bytes(), 0u) << text;
  }
  EXPECT_EQ(pool().stats().all.allocated.now, 0u);
}

}  // namespace
}  // namespace tt::server
