// 2:4 matrices: two of each four elements of a row, with the positions of both, two bits each.
#include <limits>

#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sparse/indices.h"
#include "kernels/cuda/sparse/semi_position.h"

namespace tt::cuda {
namespace {

// The magnitude by which elements are chosen: NaN is larger than any number.
template <typename T>
TT_DEVICE double magnitude(T x) {
  double size;
  if constexpr (is_complex_v<T>) {
    size = math::hypot(static_cast<double>(x.re), static_cast<double>(x.im));
  } else {
    size = math::abs(convert<double>(x));
  }
  return size != size ? std::numeric_limits<double>::infinity() : size;
}

// The positions of the two of four elements with the largest magnitudes, the first ones of equal magnitudes.
template <typename T>
TT_DEVICE void largest_two(const T* x, int& low, int& high) {
  double size[4];
  TT_UNROLL
  for (int i = 0; i < 4; ++i) size[i] = magnitude(x[i]);
  int first = 0;
  TT_UNROLL
  for (int i = 1; i < 4; ++i) first = size[i] > size[first] ? i : first;
  int second = first == 0 ? 1 : 0;
  for (int i = second + 1; i < 4; ++i) second = i != first && size[i] > size[second] ? i : second;
  low = first < second ? first : second;
  high = first < second ? second : first;
}

template <typename T>
void compress(const Tensor& x, Tensor& values, Tensor& meta) {
  const T* from = x.data_as<T>();
  T* to = values.data_as<T>();
  int16_t* words = meta.data_as<int16_t>();
  for_each(queue_of(meta), meta.numel(), [=] TT_DEVICE(int64_t w) {
    unsigned word = 0;
    for (int64_t g = w * 4; g < w * 4 + 4; ++g) {
      int low, high;
      largest_two(from + g * 4, low, high);
      to[g * 2] = from[g * 4 + low];
      to[g * 2 + 1] = from[g * 4 + high];
      word |= static_cast<unsigned>(low | (high << 2)) << (g % 4 * 4);
    }
    words[w] = static_cast<int16_t>(static_cast<uint16_t>(word));
  });
}

// Computes an element of the matrix: the sum of the values of its group of four that have its position, because both
// may have one position.
template <typename T>
void expand(const Tensor& values, const Tensor& meta, Tensor& out) {
  const T* from = values.data_as<T>();
  const int16_t* words = meta.data_as<int16_t>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t at) {
    const int64_t first = at / 4 * 2;
    T sum{};
    for (int64_t i = first; i < first + 2; ++i) {
      if (semi_position(words, i) == at % 4) sum = static_cast<T>(sum + from[i]);
    }
    to[at] = sum;
  });
}

template <typename T>
void select(const Tensor& x, const Tensor& meta, Tensor& out) {
  const T* from = x.data_as<T>();
  const int16_t* words = meta.data_as<int16_t>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) { to[i] = from[i / 2 * 4 + semi_position(words, i)]; });
}

}  // namespace

void sparse_semi_compress(const Tensor& input, Tensor& values, Tensor& meta) {
  const Tensor x = contiguous(input);
  with_any_element(x.dtype(), [&]<typename T>(std::type_identity<T>) { compress<T>(x, values, meta); });
}

void sparse_semi_expand(const Tensor& values, const Tensor& meta, Tensor& out) {
  const Tensor x = contiguous(values), words = contiguous(meta);
  with_any_element(x.dtype(), [&]<typename T>(std::type_identity<T>) { expand<T>(x, words, out); });
}

void sparse_semi_select(const Tensor& input, const Tensor& meta, Tensor& out) {
  const Tensor x = contiguous(input), words = contiguous(meta);
  with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) { select<T>(x, words, out); });
}

}  // namespace tt::cuda
