// Compiler: interface that compiles kernels at run time.
//
// One instance per process. For GPUs, it is NVRTC (libraries/), loaded on first use. The tests' compiler runs the
// source as a loop on the host. Thread-safe; uses the calling thread's current device.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {

using KernelHandle = void*;  // CUfunction

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Whether a compiler is installed.
  virtual bool available() = 0;
  // Compiles `source` and returns its kernel, which must be named `fused`. The kernel stays loaded until the process
  // ends. The standard-library declarations that scalar_math.h needs are prepended to `source`. Throws Error if
  // compilation fails.
  virtual KernelHandle compile(const std::string& source) = 0;
  // Launches the kernel. `parameters` points to the kernel's single argument, a struct of `bytes` bytes.
  virtual void launch(KernelHandle kernel, int64_t blocks, int threads, void* parameters, size_t bytes,
                      StreamHandle stream) = 0;
};

std::unique_ptr<Compiler> make_compiler();

}  // namespace tt::cuda
