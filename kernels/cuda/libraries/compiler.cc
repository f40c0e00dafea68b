// Compiler for GPUs: calls NVRTC, and the driver's module functions, which are looked up through cudart.
#include "kernels/cuda/runtime/compiler.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "kernels/cuda/libraries/driver.h"
#include "kernels/cuda/libraries/nvrtc.h"

namespace tt::cuda {
namespace {

void must(const char* call, CUresult code) {
  check(code == CUDA_SUCCESS, "CUDA error ", static_cast<int>(code), " from ", call);
}

class NvrtcCompiler final : public Compiler {
 public:
  bool available() override { return Nvrtc::find() != nullptr; }

  KernelHandle compile(const std::string& source) override {
    int device = 0;
    check(cudaGetDevice(&device) == cudaSuccess, "the calling thread has no current CUDA device");
    const Properties properties = runtime().properties(device);
    const std::string code =
        Nvrtc::find()->compile(absl::StrCat(kNvrtcPrelude, source), properties.major, properties.minor);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    must("cuModuleLoadData", load_(&module, code.data()));
    must("cuModuleGetFunction", function_(&function, module, "fused"));
    return function;
  }

  void launch(KernelHandle kernel, int64_t blocks, int threads, void* parameters, size_t,
              StreamHandle stream) override {
    void* all[] = {parameters};
    must("cuLaunchKernel",
         launch_(static_cast<CUfunction>(kernel), static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(threads),
                 1, 1, 0, static_cast<CUstream>(stream), all, nullptr));
  }

 private:
  decltype(&cuModuleLoadData) load_ = driver_function<decltype(&cuModuleLoadData)>("cuModuleLoadData");
  decltype(&cuModuleGetFunction) function_ = driver_function<decltype(&cuModuleGetFunction)>("cuModuleGetFunction");
  decltype(&cuLaunchKernel) launch_ = driver_function<decltype(&cuLaunchKernel)>("cuLaunchKernel");
};

}  // namespace

std::unique_ptr<Compiler> make_compiler() { return std::make_unique<NvrtcCompiler>(); }

}  // namespace tt::cuda
