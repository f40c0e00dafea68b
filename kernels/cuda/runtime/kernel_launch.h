// KernelLaunch: a deferred launch, with its function, its parameters, and how to issue it.
//
// Trivially copyable: a byte-wise copy is the same launch, and two launches with equal bytes do the same. The
// parameters follow the header in memory (KernelLaunchWith), aligned to 16 bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {

struct alignas(16) KernelLaunch {
  void (*issue)(const KernelLaunch& launch, StreamHandle stream);
  const void* kernel = nullptr;  // a __global__ function of two parameters; null if `issue` calls something else
  uint32_t blocks = 0, threads = 0;
  uint32_t second = 0;  // byte offset of the kernel's second parameter in parameters(); the first is at 0
  uint32_t parameter_bytes = 0;

  void* parameters() { return this + 1; }
  const void* parameters() const { return this + 1; }
  size_t bytes() const { return sizeof(KernelLaunch) + parameter_bytes; }

  // Whether `other` runs the same function, perhaps with other parameters.
  bool has_same_function(const KernelLaunch& other) const {
    return issue == other.issue && kernel == other.kernel && parameter_bytes == other.parameter_bytes;
  }
  // Whether the bytes of both launches are equal. May return false for launches that do the same, if their padding
  // differs; an unnecessary update is correct, but slower.
  bool equals(const KernelLaunch& other) const {
    return bytes() == other.bytes() && std::memcmp(this, &other, bytes()) == 0;
  }
};

template <typename P>
class KernelLaunchWith {
 public:
  static_assert(std::is_trivially_copyable_v<P> && alignof(P) <= alignof(KernelLaunch));

  KernelLaunchWith(void (*issue)(const KernelLaunch&, StreamHandle), const P& parameters) {
    std::memset(static_cast<void*>(&parameters_), 0, sizeof parameters_);
    ::new (&parameters_) P(parameters);
    launch_.issue = issue;
    launch_.parameter_bytes = sizeof parameters_;
  }
  KernelLaunch* operator->() { return &launch_; }
  const KernelLaunch& operator*() const { return launch_; }

 private:
  KernelLaunch launch_{};
  alignas(KernelLaunch) std::byte parameters_[(sizeof(P) + 15) / 16 * 16];
};

// Requires a launch that was constructed with a P.
template <typename P>
const P& parameters_of(const KernelLaunch& launch) {
  return *std::launder(static_cast<const P*>(launch.parameters()));
}

}  // namespace tt::cuda
