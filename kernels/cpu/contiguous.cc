#include "kernels/cpu/contiguous.h"

#include <algorithm>
#include <cstring>

#include "engine/parallel.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/strided_block.h"

namespace tt::cpu {
namespace {

constexpr int64_t kGrain = 1 << 15;

// Calls row(offset, to, n) for runs of the last dimension: where a run starts in t's memory, where it
// goes, and its length. Runs on the pool.
template <typename F>
void for_each_row(const Tensor& t, F&& row) {
  const int64_t n = t.dim() == 0 ? 1 : t.size(-1);
  const int64_t rows = n == 0 ? 0 : t.numel() / n;
  parallel_for(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t offset = 0, rest = r;
      for (int64_t d = t.dim() - 2; d >= 0; --d) {
        offset += rest % t.size(d) * t.stride(d);
        rest /= t.size(d);
      }
      row(offset, r * n, n);
    }
  });
}

}  // namespace

Tensor contiguous(const Tensor& t) {
  if (!t || t.is_contiguous()) return t;
  Tensor out = empty(t.sizes(), t.dtype(), t.device());
  const int64_t stride = t.dim() == 0 ? 1 : t.stride(-1);
  with_bits(t.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* from = t.data_as<T>();
    T* to = out.data_as<T>();
    for_each_row(t, [&](int64_t offset, int64_t at, int64_t n) {
      if (stride == 1) {
        std::memcpy(to + at, from + offset, static_cast<size_t>(n) * sizeof(T));
      } else {
        for (int64_t i = 0; i < n; ++i) to[at + i] = from[offset + i * stride];
      }
    });
  });
  return out;
}

Tensor contiguous_as(const Tensor& t, DType dtype) {
  if (!t || t.dtype() == dtype) return contiguous(t);
  Tensor out = empty(t.sizes(), dtype, t.device());
  const int64_t stride = t.dim() == 0 ? 1 : t.stride(-1);
  const char* from = t.data_as<char>();
  const int64_t item = static_cast<int64_t>(item_size(t.dtype()));
  for_each_row(t, [&](int64_t offset, int64_t at, int64_t n) {
    const void* source = from + offset * item;
    if (dtype == DType::kFloat64) {
      load_block(out.data_as<double>() + at, source, t.dtype(), stride, n);
    } else {
      load_block(out.data_as<float>() + at, source, t.dtype(), stride, n);
    }
  });
  return out;
}

void convert(const Tensor& from, Tensor& to) {
  const int64_t item = static_cast<int64_t>(item_size(to.dtype()));
  parallel_for(from.numel(), kGrain, [&](int64_t begin, int64_t end) {
    void* target = to.data_as<char>() + begin * item;
    if (from.dtype() == DType::kFloat64) {
      store_block(target, to.dtype(), 1, from.data_as<double>() + begin, end - begin);
    } else {
      store_block(target, to.dtype(), 1, from.data_as<float>() + begin, end - begin);
    }
  });
}

}  // namespace tt::cpu
