// Nvrtc: compiles CUDA C++ with NVRTC, which is opened if it is installed.
#pragma once

#include <string>

#include "kernels/cuda/libraries/library.h"

namespace tt::cuda {

class Nvrtc {
 public:
  // Returns the process-wide instance; null if the library is missing. Tests call it without a driver, which NVRTC does
  // not need.
  static const Nvrtc* find();

  // Returns code that the driver can load on a device of this compute capability: machine code, or PTX if the library
  // is older than the device. Throws Error (RuntimeError) with the compiler's messages. Thread-safe.
  std::string compile(const std::string& source, int major, int minor) const;

 private:
  explicit Nvrtc(const Library& library);
  int nearest(int architecture) const;

  using Program = void*;
  const char* (*error_)(int code);
  int (*create_)(Program*, const char* source, const char* name, int headers, const char* const*, const char* const*);
  int (*compile_)(Program, int options, const char* const*);
  int (*destroy_)(Program*);
  int (*log_size_)(Program, size_t*);
  int (*log_)(Program, char*);
  int (*cubin_size_)(Program, size_t*);
  int (*cubin_)(Program, char*);
  int (*ptx_size_)(Program, size_t*);
  int (*ptx_)(Program, char*);
  int (*count_)(int*);
  int (*architectures_)(int*);
};

// Prepended to every source (compiler.h): the standard-library declarations that scalar_math.h uses and NVRTC lacks.
extern const char* const kNvrtcPrelude;

}  // namespace tt::cuda
