// Compiler: kernels compiled while the engine runs.
//
// One a process. The real one (libraries/) is NVRTC, opened at the first need; the tests' runs what it compiles as a
// loop on the host. Thread-safe; acts on the calling thread's current device.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {

using KernelHandle = void*;  // CUfunction

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Whether there is anything to compile with.
  virtual bool available() = 0;
  // `source`'s kernel, named `fused`, loaded for the life of the process. Sources begin where scalar_math.h does: what
  // that needs of the standard library is before them. Throws Error on what does not compile.
  virtual KernelHandle compile(const std::string& source) = 0;
  // `parameters`: `bytes` of the one struct that the kernel takes.
  virtual void launch(KernelHandle kernel, int64_t blocks, int threads, void* parameters, size_t bytes,
                      StreamHandle stream) = 0;
};

std::unique_ptr<Compiler> make_compiler();

}  // namespace tt::cuda
