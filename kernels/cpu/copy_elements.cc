#include "kernels/cpu/copy_elements.h"

#include <cstring>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/nest.h"

namespace tt::cpu {

namespace {

template <typename T>
void copy_row(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t n) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, n * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

}  // namespace

void copy_elements(const Tensor& from, void* to, SizesView strides) {
  with_bits(from.dtype(), [&]<typename T>(std::type_identity<T>) {
    Nest<2> nest(from.sizes(), {strides, from.strides()});
    nest.walk_in_parallel([&](const Nest<2>::Offsets& at, int64_t) {
      copy_row(static_cast<T*>(to) + at[0], nest.stride(0), from.data_as<T>() + at[1], nest.stride(1), nest.length());
    });
  });
}

void copy_elements(const Tensor& from, Tensor& to) { copy_elements(from, to.data(), to.strides()); }

}  // namespace tt::cpu
