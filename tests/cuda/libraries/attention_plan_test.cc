// Execution plans of cuDNN's attention for a GPU that is not present: the real library accepts the graphs, generates
// their kernels and compiles them. Only loading and running them needs a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "kernels/cuda/libraries/cudnn_attention.h"
#include "kernels/cuda/libraries/library.h"

namespace tt::cuda {
namespace {

// The properties of an H200 as cuDNN describes them: numbers from NVIDIA's documentation, and a recent driver.
constexpr char kH200[] = R"({
  "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "deviceName": "NVIDIA H200", "pciDeviceId": 0,
  "multiProcessorCount": 132, "warpSize": 32, "maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
  "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "totalGlobalMem": 150754820096,
  "l2CacheSize": 62914560, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "isTccDriver": 0,
  "supportCoopLaunch": 1})";

// As many cases as take a few seconds: each plan is compiled for 0.4 s.
struct Case {
  DType dtype;
  int64_t samples, heads, rows, columns, depth, width;
  bool causal;
  const char *forward, *backward;  // parts of the reasons why a pass is rejected; "": it is supported
};
const Case kCases[] = {
    {DType::kBFloat16, 8, 16, 1024, 1024, 64, 64, true, "", ""},
    {DType::kFloat16, 2, 4, 128, 256, 128, 128, false, "", ""},
    {DType::kFloat16, 2, 2, 256, 128, 64, 32, true, "", ""},
    {DType::kBFloat16, 3, 1, 384, 128, 8, 72, false, "", ""},
    {DType::kFloat16, 2, 2, 77, 100, 64, 64, true, "", ""},
    {DType::kFloat16, 1, 1, 128, 128, 12, 8, false, "multiple of 8", "multiple of 8"},
    {DType::kFloat16, 1, 1, 128, 128, 8, 264, false, "", "256"},
    {DType::kFloat16, 1, 1, 1, 1, 8, 8, false, "", "s_q = s_kv = 1"},
};

TEST(AttentionPlanTest, CudnnSupportsWhatAttentionUses) {
  if (!Library("cuDNN", {"libcudnn.so.9"})) GTEST_SKIP() << "cuDNN is not installed";
  if (!make_fused_attention()) GTEST_SKIP() << "cuDNN is too old, or the headers of its front end are not installed";
  ASSERT_NE(dlopen(TT_DRIVER_WITHOUT_DEVICE, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  for (const Case& c : kCases) {
    FusedAttentionCall call{};
    call.dtype = c.dtype;
    call.samples = c.samples;
    call.heads = c.heads;
    call.rows = c.rows;
    call.columns = c.columns;
    call.depth = c.depth;
    call.width = c.width;
    call.causal = c.causal;
    call.scale = 0.125f;
    for (const bool backward : {false, true}) {
      const std::string why = why_attention_is_rejected(call, backward, kH200, 90),
                        want = backward ? c.backward : c.forward;
      EXPECT_EQ(why.empty(), want.empty()) << c.rows << " x " << c.columns << ", " << backward << ": " << why;
      EXPECT_NE(why.find(want), std::string::npos) << why;
    }
  }
}

}  // namespace
}  // namespace tt::cuda
