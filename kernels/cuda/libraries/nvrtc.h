// NVRTC: CUDA C++ to machine code, by a library that is opened where it is found.
#pragma once

#include <string>

#include "kernels/cuda/libraries/library.h"

namespace tt::cuda {

class Nvrtc {
 public:
  // The process's; null where no library is found. The tests run without a driver, which NVRTC does not need.
  static const Nvrtc* find();

  // What the driver loads on a device of that compute capability: machine code, or PTX where the library is older than
  // the device. Throws Error (RuntimeError) with the compiler's messages. Thread-safe.
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

// What goes before a source (compiler.h): of the standard library what scalar_math.h uses, which NVRTC has not.
extern const char* const kNvrtcPrelude;

}  // namespace tt::cuda
