// Work: a launch that may wait: what runs, with what, and how it is issued.
//
// Plain bytes, of which a copy is as good as the original: two that are equal byte by byte do the same. The parameters
// stand behind the head (WorkWith), aligned as any of them may want.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {

struct alignas(16) Work {
  void (*issue)(const Work& work, StreamHandle stream);
  const void* kernel = nullptr;  // a __global__ function of two parameters; null: `issue` does something else
  uint32_t blocks = 0, threads = 0;
  uint32_t second = 0;  // where among the parameters the kernel's second one is; its first is at 0
  uint32_t parameter_bytes = 0;

  void* parameters() { return this + 1; }
  const void* parameters() const { return this + 1; }
  size_t bytes() const { return sizeof(Work) + parameter_bytes; }

  // Whether the other one runs the same function, be it with other parameters.
  bool is_like(const Work& other) const {
    return issue == other.issue && kernel == other.kernel && parameter_bytes == other.parameter_bytes;
  }
  // Whether it does the very same. False also where padding differs, which costs time and nothing else.
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

// Of work that was made with a P.
template <typename P>
const P& parameters_of(const Work& work) {
  return *std::launder(static_cast<const P*>(work.parameters()));
}

}  // namespace tt::cuda
