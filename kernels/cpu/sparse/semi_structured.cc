// 2:4 matrices: two of each four elements of a row, with the positions of both, two bits each.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/parallel.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

constexpr int64_t kGrain = 4096;  // minimum number of groups of four elements per thread

// The positions of the two of four elements with the largest magnitudes, the first ones of equal magnitudes; NaN is
// larger than any number.
template <typename T>
void largest_two(const T* x, int (&at)[2]) {
  double size[4];
  for (int i = 0; i < 4; ++i) {
    if constexpr (is_complex_v<T>) {
      size[i] = std::hypot(static_cast<double>(x[i].re), static_cast<double>(x[i].im));
    } else {
      size[i] = std::abs(static_cast<double>(x[i]));
    }
    if (size[i] != size[i]) size[i] = std::numeric_limits<double>::infinity();
  }
  int first = 0;
  for (int i = 1; i < 4; ++i) first = size[i] > size[first] ? i : first;
  int second = first == 0 ? 1 : 0;
  for (int i = second + 1; i < 4; ++i) second = i != first && size[i] > size[second] ? i : second;
  at[0] = std::min(first, second);
  at[1] = std::max(first, second);
}

// The position in its group of value i of a matrix.
int position(const int16_t* meta, int64_t i) { return (static_cast<uint16_t>(meta[i / 8]) >> (i % 8 * 2)) & 3; }

}  // namespace

void sparse_semi_compress(const Tensor& input, Tensor& values, Tensor& meta) {
  const Tensor x = contiguous(input);
  with_any_element(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    parallel_for(meta.numel(), kGrain / 4, [&](int64_t begin, int64_t end) {
      for (int64_t w = begin; w < end; ++w) {
        unsigned word = 0;
        for (int64_t g = 0; g < 4; ++g) {
          const T* from = x.data_as<T>() + w * 16 + g * 4;
          int at[2];
          largest_two(from, at);
          for (int i = 0; i < 2; ++i) values.data_as<T>()[w * 8 + g * 2 + i] = from[at[i]];
          word |= static_cast<unsigned>(at[0] | (at[1] << 2)) << (g * 4);
        }
        meta.data_as<int16_t>()[w] = static_cast<int16_t>(static_cast<uint16_t>(word));
      }
    });
  });
}

void sparse_semi_expand(const Tensor& values, const Tensor& meta, Tensor& out) {
  const Tensor x = contiguous(values), words = contiguous(meta);
  with_any_element(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    parallel_for(x.numel() / 2, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        T group[4] = {};
        for (int64_t i = g * 2; i < g * 2 + 2; ++i) {  // both may have one position
          T& to = group[position(words.data_as<int16_t>(), i)];
          to = static_cast<T>(to + x.data_as<T>()[i]);
        }
        std::copy_n(group, 4, out.data_as<T>() + g * 4);
      }
    });
  });
}

void sparse_semi_select(const Tensor& input, const Tensor& meta, Tensor& out) {
  const Tensor x = contiguous(input), words = contiguous(meta);
  with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    parallel_for(out.numel(), 2 * kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        out.data_as<T>()[i] = x.data_as<T>()[i / 2 * 4 + position(words.data_as<int16_t>(), i)];
      }
    });
  });
}

}  // namespace tt::cpu
