// Pack: elements that are loaded and stored at once.
#pragma once

#include <cstddef>

namespace tt::cuda {

template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T at[kCount];
};

}  // namespace tt::cuda
