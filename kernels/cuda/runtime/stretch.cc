#include "kernels/cuda/runtime/stretch.h"

#include "absl/hash/hash.h"

namespace tt::cuda {

void Stretch::add(const Work& work) {
  const size_t at = words_.size();
  words_.resize(at + work.bytes() / sizeof(Word));
  std::memcpy(static_cast<void*>(&words_[at]), &work, work.bytes());
  const uint64_t before = hash(size());
  entries_.push_back({at, absl::HashOf(before, reinterpret_cast<uintptr_t>(work.issue),
                                       reinterpret_cast<uintptr_t>(work.kernel), work.parameter_bytes)});
}

void Stretch::clear() {
  words_.clear();
  entries_.clear();
}

void Stretch::replace(size_t i, const Work& work) {
  std::memcpy(static_cast<void*>(&words_[entries_[i].at]), &work, work.bytes());
}

}  // namespace tt::cuda
