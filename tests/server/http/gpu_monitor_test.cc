// GpuMonitor, with a library that has NVML's functions (fake_nvml.cc).
#include "server/http/gpu_monitor.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/server/wait_until.h"

namespace tt::server {
namespace {

constexpr std::chrono::milliseconds kInterval{5};

// A function of the library, which stays open.
template <typename Function>
Function* fake(const char* name) {
  return reinterpret_cast<Function*>(dlsym(dlopen(TT_FAKE_NVML, RTLD_NOW | RTLD_LOCAL), name));
}

TEST(GpuMonitor, ReadsWhatTheDriverReports) {
  auto* users = fake<int()>("fake_nvml_users");
  {
    const auto monitor = GpuMonitor::start(TT_FAKE_NVML, kInterval);
    ASSERT_NE(monitor, nullptr);
    const std::vector<GpuMonitor::Gpu> gpus = monitor->gpus();
    ASSERT_EQ(gpus.size(), 2u);
    EXPECT_EQ(gpus[0].uuid, "GPU-00000000-0000-0000-0000-000000000000");
    EXPECT_EQ(gpus[0].name, "Simulated \"GPU\"");
    EXPECT_DOUBLE_EQ(gpus[0].utilization.value(), 0.73);
    EXPECT_EQ(gpus[0].used_bytes.value(), 12ull << 30);
    EXPECT_EQ(gpus[0].total_bytes.value(), 80ull << 30);
    EXPECT_EQ(gpus[1].index, 1u);
    EXPECT_FALSE(gpus[1].utilization.has_value());
    EXPECT_EQ(gpus[1].used_bytes.value(), 13ull << 30);
    EXPECT_EQ(users(), 1);
  }
  EXPECT_EQ(users(), 0);  // it was shut down
}

TEST(GpuMonitor, ReportsNoGpusWhileTheDriverHangs) {
  auto* hang = fake<void(bool)>("fake_nvml_hang");
  const auto monitor = GpuMonitor::start(TT_FAKE_NVML, kInterval);
  ASSERT_NE(monitor, nullptr);
  hang(true);
  EXPECT_TRUE(testing::wait_until([&] { return monitor->gpus().empty(); }));  // and gpus() does not wait for it
  hang(false);
  EXPECT_TRUE(testing::wait_until([&] { return monitor->gpus().size() == 2; }));
}

TEST(GpuMonitor, IsAbsentWithoutADriver) {
  EXPECT_EQ(GpuMonitor::start("libno-such-library.so.1", kInterval), nullptr);
  EXPECT_EQ(GpuMonitor::start("libm.so.6", kInterval), nullptr);  // a library without the functions
  setenv("FAKE_NVML_WITHOUT_DRIVER", "1", 1);
  EXPECT_EQ(GpuMonitor::start(TT_FAKE_NVML, kInterval), nullptr);
  unsetenv("FAKE_NVML_WITHOUT_DRIVER");
}

}  // namespace
}  // namespace tt::server
