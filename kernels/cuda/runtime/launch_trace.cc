#include "kernels/cuda/runtime/launch_trace.h"

#include "absl/hash/hash.h"

namespace tt::cuda {

void LaunchTrace::add(const KernelLaunch& launch) {
  const size_t at = words_.size();
  words_.resize(at + launch.bytes() / sizeof(Word));
  std::memcpy(static_cast<void*>(&words_[at]), &launch, launch.bytes());
  const uint64_t before = hash(size());
  entries_.push_back({at, absl::HashOf(before, reinterpret_cast<uintptr_t>(launch.issue),
                                       reinterpret_cast<uintptr_t>(launch.kernel), launch.parameter_bytes)});
}

void LaunchTrace::clear() {
  words_.clear();
  entries_.clear();
}

void LaunchTrace::replace(size_t i, const KernelLaunch& launch) {
  std::memcpy(static_cast<void*>(&words_[entries_[i].at]), &launch, launch.bytes());
}

}  // namespace tt::cuda
