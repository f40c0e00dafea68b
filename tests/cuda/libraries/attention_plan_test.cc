// Execution plans of cuDNN's attention for a GPU that is not present: the real library accepts the graphs, generates
// their kernels and compiles them. Only loading and running them needs a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/libraries/cudnn_attention.h"
#include "kernels/cuda/libraries/library.h"

namespace tt::cuda {
namespace {

struct Gpu {
  const char* name;
  int capability, multiprocessors, shared_memory, threads, groups;  // the last two per multiprocessor
};
const Gpu kH200{"NVIDIA H200", 90, 132, 232448, 2048, 32};
const Gpu kA100{"NVIDIA A100", 80, 108, 166912, 2048, 32};
const Gpu kB200{"NVIDIA B200", 100, 148, 232448, 2048, 32};

// The device's properties as cuDNN describes them, with a recent driver.
std::string described(const Gpu& gpu) {
  return absl::StrCat(R"({"deviceName": ")", gpu.name, R"(", "deviceVer": )", 10 * gpu.capability,
                      R"(, "multiProcessorCount": )", gpu.multiprocessors, R"(, "maxSharedMemoryPerBlockOptin": )",
                      gpu.shared_memory, R"(, "maxThreadsPerSM": )", gpu.threads, R"(, "maxCtasPerSM": )", gpu.groups,
                      R"(, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0, "warpSize": 32,
                      "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
                      "maxThreadsPerBlock": 1024, "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
                      "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024,
                      "totalGlobalMem": 80000000000, "l2CacheSize": 41943040, "smClockRateKHz": 1980000,
                      "memClockRateKHz": 3201000, "isTccDriver": 0, "supportCoopLaunch": 1})");
}

// As many cases as take a few seconds: each plan is compiled for 0.4 s.
struct Case {
  Gpu gpu;
  DType dtype;
  int64_t samples, heads, rows, columns, depth, width;
  bool causal;
  const char *forward, *backward;  // parts of the reasons why a pass is rejected; "": it is supported
};
const Case kCases[] = {
    {kH200, DType::kBFloat16, 8, 16, 1024, 1024, 64, 64, true, "", ""},
    {kH200, DType::kFloat16, 2, 4, 128, 256, 128, 128, false, "", ""},
    {kH200, DType::kFloat16, 2, 2, 256, 128, 64, 32, true, "", ""},
    {kH200, DType::kBFloat16, 3, 1, 384, 128, 8, 72, false, "", ""},
    {kH200, DType::kFloat16, 2, 2, 77, 100, 64, 64, true, "", ""},
    {kA100, DType::kFloat16, 1, 2, 128, 256, 128, 64, true, "", ""},
    {kB200, DType::kBFloat16, 1, 2, 128, 256, 128, 64, true, "", ""},
    {kH200, DType::kFloat16, 1, 1, 128, 128, 12, 8, false, "multiple of 8", "multiple of 8"},
    {kH200, DType::kFloat16, 1, 1, 128, 128, 8, 264, false, "", "256"},
    {kH200, DType::kFloat16, 1, 1, 1, 1, 8, 8, false, "", "s_q = s_kv = 1"},
};

// The call, with one address for all tensors.
FusedAttentionCall call_of(const Case& c) {
  alignas(kAttentionAlignment) static char memory[2 * kAttentionAlignment];
  return {c.dtype,  c.samples, c.heads, c.rows, c.columns, c.depth, c.width,
          c.causal, 0.125f,    memory,  memory, memory,    memory,  reinterpret_cast<float*>(memory),
          memory,   memory,    memory,  memory};
}

TEST(AttentionPlanTest, CudnnSupportsWhatAttentionUses) {
  if (!Library("cuDNN", {"libcudnn.so.9"})) GTEST_SKIP() << "cuDNN is not installed";
  if (!make_fused_attention()) GTEST_SKIP() << "cuDNN is too old, or the headers of its front end are not installed";
  ASSERT_NE(dlopen(TT_DRIVER_WITHOUT_DEVICE, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  for (const Case& c : kCases) {
    for (const bool backward : {false, true}) {
      const std::string why = why_attention_is_rejected(call_of(c), backward, described(c.gpu), c.gpu.capability);
      const std::string want = backward ? c.backward : c.forward;
      EXPECT_EQ(why.empty(), want.empty()) << c.gpu.name << ", " << c.rows << " x " << c.columns << ": " << why;
      EXPECT_NE(why.find(want), std::string::npos) << why;
    }
  }
  FusedAttentionCall unaligned = call_of(kCases[0]);
  unaligned.key = static_cast<const char*>(unaligned.key) + 2;
  const std::string why = why_attention_is_rejected(unaligned, false, described(kH200), 90);
  EXPECT_NE(why.find("not aligned"), std::string::npos) << why;
}

}  // namespace
}  // namespace tt::cuda
