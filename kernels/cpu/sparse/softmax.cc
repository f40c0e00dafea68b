// Softmax over the entries of a sparse tensor that have the same group.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/sparse/indices.h"

namespace tt::cpu {
namespace {

// Elements [begin, end) of all entries, rows of `width` elements. `most` and `sums` have a row per group.
template <typename T>
void softmax_columns(const T* x, const int64_t* group, int64_t n, int64_t groups, int64_t width, int64_t begin,
                     int64_t end, bool log, T* most, T* sums, T* out) {
  for (int64_t g = 0; g < groups; ++g) {
    std::fill(most + g * width + begin, most + g * width + end, -std::numeric_limits<T>::infinity());
    std::fill(sums + g * width + begin, sums + g * width + end, T(0));
  }
  for (int64_t i = 0; i < n; ++i) {
    T* m = most + group[i] * width;
    for (int64_t j = begin; j < end; ++j) m[j] = std::max(m[j], x[i * width + j]);
  }
  for (int64_t i = 0; i < n; ++i) {
    const T* m = most + group[i] * width;
    T* s = sums + group[i] * width;
    for (int64_t j = begin; j < end; ++j) {
      const T shifted = x[i * width + j] - m[j], e = std::exp(shifted);
      out[i * width + j] = log ? shifted : e;
      s[j] += e;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const T* s = sums + group[i] * width;
    for (int64_t j = begin; j < end; ++j) {
      T& to = out[i * width + j];
      to = log ? to - std::log(s[j]) : to / s[j];
    }
  }
}

}  // namespace

void sparse_softmax(const Tensor& values, const Tensor& group, int64_t groups, bool log, Tensor& out) {
  const int64_t n = values.size(0);
  const Tensor checked = checked_positions(group, groups);
  if (out.numel() == 0) return;
  const int64_t width = out.numel() / n;
  const Tensor x = as_accumulate_type(values);
  AccumulateBuffer result(out);
  Tensor most = empty({groups, width}, x.dtype(), x.device()), sums = empty({groups, width}, x.dtype(), x.device());
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    parallel_for(width, std::max<int64_t>(16, (1 << 14) / n), [&](int64_t begin, int64_t end) {
      softmax_columns(x.data_as<T>(), checked.data_as<int64_t>(), n, groups, width, begin, end, log, most.data_as<T>(),
                      sums.data_as<T>(), result.data<T>());
    });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
