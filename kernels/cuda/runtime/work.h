// Work: a delayable launch: the function, its parameters, and how to issue it.
//
// Trivially copyable: two objects that are equal byte by byte do the same. The parameters follow the header (WorkWith),
// aligned for any type.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {

struct alignas(16) Work {
  void (*issue)(const Work& work, StreamHandle stream);
  const void* kernel = nullptr;  // a __global__ function of two parameters; null: `issue` does not launch a kernel
  uint32_t blocks = 0, threads = 0;
  uint32_t second = 0;  // offset of the kernel's second parameter; its first is at 0
  uint32_t parameter_bytes = 0;

  void* parameters() { return this + 1; }
  const void* parameters() const { return this + 1; }
  size_t bytes() const { return sizeof(Work) + parameter_bytes; }

  // Whether the other object runs the same function, possibly with different parameters.
  bool is_like(const Work& other) const {
    return issue == other.issue && kernel == other.kernel && parameter_bytes == other.parameter_bytes;
  }
  // Whether the two do exactly the same. May return false if only padding differs, which only costs time.
  bool equals(const Work& other) const { return bytes() == other.bytes() && std::memcmp(this, &other, bytes()) == 0; }
};

template <typename P>
class WorkWith {
 public:
  static_assert(std::is_trivially_copyable_v<P> && alignof(P) <= alignof(Work));

  WorkWith(void (*issue)(const Work&, StreamHandle), const P& parameters) {
    std::memset(static_cast<void*>(&parameters_), 0, sizeof parameters_);
    ::new (&parameters_) P(parameters);
    work_.issue = issue;
    work_.parameter_bytes = sizeof parameters_;
  }
  Work* operator->() { return &work_; }
  const Work& operator*() const { return work_; }

 private:
  Work work_{};
  alignas(Work) std::byte parameters_[(sizeof(P) + 15) / 16 * 16];
};

// Returns the parameters of work that was created with a P.
template <typename P>
const P& parameters_of(const Work& work) {
  return *std::launder(static_cast<const P*>(work.parameters()));
}

}  // namespace tt::cuda
