// An allocation fails with an error that names the cause before the host runs out of memory.
#include "engine/memory/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/memory/caching_pool.h"
#include "engine/memory/system_memory.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20, kGiB = uint64_t{1} << 30;

class HostFilesTest : public testing::Test {
 protected:
  HostFilesTest() : root_(testing::TempDir() + "host_memory_test") {
    std::filesystem::remove_all(root_);
    write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  1 kB\nMemAvailable:    8388608 kB\nBuffers: 1 kB\n");
    write("/proc/self/statm", "5000 3000 1000 1 0 1 0\n");
  }
  ~HostFilesTest() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  HostMemory read() { return read_host_memory(root_).value(); }

  const std::string root_;
};

TEST_F(HostFilesTest, ReadsTheKernelsFigures) {
  EXPECT_EQ(read().total, 16 * kGiB);
  EXPECT_EQ(read().available, 8 * kGiB);
  EXPECT_EQ(read().resident, 2000u * static_cast<uint64_t>(getpagesize()));
  write("/proc/meminfo", "MemTotal: 16777216 kB\n");
  EXPECT_FALSE(read_host_memory(root_));
}

TEST_F(HostFilesTest, AppliesTheLimitsOfAllGroups) {
  const std::string groups = "/sys/fs/cgroup";
  write("/proc/self/cgroup", "0::/kube/pod\n");
  write(groups + "/kube/pod/memory.max", "max\n");
  EXPECT_EQ(read().available, 8 * kGiB);
  write(groups + "/kube/memory.max", "2147483648\n");
  write(groups + "/kube/memory.current", "1610612736\n");
  EXPECT_EQ(read().total, 2 * kGiB);
  EXPECT_EQ(read().available, 512 * kMiB);
  write(groups + "/kube/memory.stat", "anon 1\ninactive_file 268435456\nactive_file 1048576\n");
  EXPECT_EQ(read().available, 769 * kMiB);
  write("/proc/self/cgroup", "0::/../other\n");  // only the mounted root is visible
  EXPECT_EQ(read().total, 16 * kGiB);
  write(groups + "/memory.max", "1073741824\n");
  write(groups + "/memory.current", "2000000000\n");
  EXPECT_EQ(read().total, kGiB);
  EXPECT_EQ(read().available, 0u);
}

TEST_F(HostFilesTest, AppliesGroupsOfVersion1) {
  write("/proc/self/cgroup", "12:pids:/a\n4:memory:/docker/1\n1:name=systemd:/a\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "1073741824\n");
  write("/sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", "805306368\n");
  EXPECT_EQ(read().total, kGiB);
  EXPECT_EQ(read().available, 256 * kMiB);
}

TEST(HostMemoryTest, DefaultLimitLeavesRoom) {
  EXPECT_EQ(default_memory_limit(24 * kGiB), 24 * kGiB - 3 * kGiB - 256 * kMiB);
  EXPECT_EQ(default_memory_limit(512 * kGiB), 480 * kGiB);
  EXPECT_EQ(default_memory_limit(2 * kGiB), 2 * kGiB - 512 * kMiB);
  EXPECT_EQ(default_memory_limit(256 * kMiB), 128 * kMiB);
}

// A host of 8 GiB (of which 256 MiB are kept free) whose figures a test sets.
class ScarceMemoryTest : public testing::Test {
 protected:
  std::string error(size_t bytes) {
    try {
      pool_.deallocate(pool_.allocate(bytes), bytes);
      return "";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory);
      return e.message();
    }
  }

  HostMemory host_{8 * kGiB, kGiB, 0};
  CachingPool pool_{Device{}, std::make_unique<SystemMemory>([this] { return std::optional(host_); })};
};

TEST_F(ScarceMemoryTest, ErrorPrecedesTheHostsExhaustion) {
  pool_.set_limit(6 * kGiB);
  EXPECT_EQ(error(512 * kMiB), "");
  pool_.empty_cache();
  host_.available = 600 * kMiB;
  EXPECT_THAT(error(512 * kMiB),
              HasSubstr("requested 512 MiB, the limit is 6 GiB, 600 MiB of the host's 8 GiB are available, of "
                        "which 256 MiB are kept free, 0 B are allocated, 0 B reserved; try: end other processes: they "
                        "and the rest of the engine use 7.41 GiB of the host's memory"));
  EXPECT_EQ(error(300 * kMiB), "");
}

TEST_F(ScarceMemoryTest, PagesThatWereNotWrittenAreCounted) {
  void* p = pool_.allocate(600 * kMiB);
  EXPECT_THAT(error(300 * kMiB), HasSubstr("are kept free"));  // 1 GiB is still reported as available
  pool_.deallocate(p, 600 * kMiB);
}

TEST_F(ScarceMemoryTest, UnusedSegmentsAreReleasedFirst) {
  void* small = pool_.allocate(300 * kMiB);
  void* other = pool_.allocate(300 * kMiB);
  pool_.deallocate(small, 300 * kMiB);
  pool_.deallocate(other, 300 * kMiB);
  EXPECT_EQ(error(700 * kMiB), "");
  EXPECT_EQ(pool_.stats().retries, 1u);
}

TEST_F(ScarceMemoryTest, CachedBlocksNeedNoReading) {
  void* p = pool_.allocate(500 * kMiB);
  pool_.deallocate(p, 500 * kMiB);
  host_.available = 0;
  EXPECT_EQ(error(500 * kMiB), "");
}

}  // namespace
}  // namespace tt
