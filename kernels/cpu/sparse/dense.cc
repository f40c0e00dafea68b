// Sparse to dense tensors and back: adds or reads parts of a dense tensor at indices, and finds the parts that are not
// 0.
#include <algorithm>
#include <cstring>

#include "engine/device/parallel.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/sparse/index_errors.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/sparse/indices.h"

namespace tt::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // minimum number of elements per thread

bool is_increasing(const int64_t* offsets, int64_t n) {
  bool increasing = true;
  for (int64_t i = 1; i < n; ++i) increasing &= offsets[i - 1] < offsets[i];
  return increasing;
}

template <typename T>
void add_parts(T* out, const int64_t* offsets, const T* values, int64_t n, int64_t width) {
  const auto add = [&](int64_t entries_begin, int64_t entries_end, int64_t begin, int64_t end) {
    for (int64_t i = entries_begin; i < entries_end; ++i) {
      T* to = out + offsets[i];
      const T* from = values + i * width;
      for (int64_t j = begin; j < end; ++j) to[j] = static_cast<T>(to[j] + from[j]);
    }
  };
  if (is_increasing(offsets, n)) {  // no part is written twice
    parallel_for(n, std::max<int64_t>(1, kGrain / width),
                 [&](int64_t begin, int64_t end) { add(begin, end, 0, width); });
  } else {  // each thread adds to its own elements of the parts, in the order of the entries
    parallel_for(width, std::max<int64_t>(64, kGrain / std::max<int64_t>(n, 1)),
                 [&](int64_t begin, int64_t end) { add(0, n, begin, end); });
  }
}

int64_t elements(SizesView sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

// The number of elements of each part.
int64_t part_width(const Tensor& parts) { return elements(SizesView(parts.sizes()).subspan(1)); }

}  // namespace

void sparse_scatter(const Tensor& indices, const Tensor& values, absl::Span<const int64_t> size, Tensor& out) {
  const int64_t n = indices.size(1), width = part_width(values);
  const Tensor offsets = checked_offsets(indices, size, width);
  AccumulateBuffer result(out);
  const Tensor parts = as_accumulate_type(values);
  fill_with(result.tensor(), Scalar(int64_t{0}));
  if (n > 0 && width > 0) {
    with_any_element(parts.dtype(), [&]<typename T>(std::type_identity<T>) {
      add_parts(result.data<T>(), offsets.data_as<int64_t>(), parts.data_as<T>(), n, width);
    });
  }
  result.copy_to_output();
}

void sparse_gather(const Tensor& input, const Tensor& indices, Tensor& out) {
  const int64_t n = indices.size(1), width = part_width(out);
  const Tensor offsets = checked_offsets(indices, SizesView(input.sizes()).first(indices.size(0)), width);
  const Tensor x = contiguous(input);
  if (width == 0) return;
  const auto item = static_cast<int64_t>(item_size(x.dtype()));
  const int64_t* from = offsets.data_as<int64_t>();
  if (width == 1) {
    return with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) {
      parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out.data_as<T>()[i] = x.data_as<T>()[from[i]];
      });
    });
  }
  parallel_for(n, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(out.data_as<char>() + i * width * item, x.data_as<char>() + from[i] * item,
                  static_cast<size_t>(width * item));
    }
  });
}

namespace {

template <typename T>
bool has_nonzero(const T* part, int64_t width) {
  return std::any_of(part, part + width, [](T x) { return x != T(0); });
}

}  // namespace

void sparse_nonzero(const Tensor& input, int64_t sparse_dim, Tensor& out) {
  check_sparse_dim(input, sparse_dim);
  const Tensor x = contiguous(input);
  const SizesView size = SizesView(input.sizes()).first(static_cast<size_t>(sparse_dim));
  const int64_t parts = elements(size), width = elements(SizesView(input.sizes()).subspan(sparse_dim));
  Tensor flags = empty({parts}, DType::kBool, input.device());
  auto* flag = flags.data_as<uint8_t>();
  // Pieces of parts, each with the number of its nonzero parts, so that each thread knows where to write.
  constexpr int64_t kPiece = 4096;
  const int64_t pieces = (parts + kPiece - 1) / kPiece;
  Tensor starts = empty({pieces + 1}, DType::kInt64, input.device());
  int64_t* start = starts.data_as<int64_t>();
  start[0] = 0;
  with_any_element(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    parallel_for(pieces, 4, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        int64_t count = 0;
        for (int64_t i = piece * kPiece; i < std::min(parts, (piece + 1) * kPiece); ++i) {
          flag[i] = has_nonzero(x.data_as<T>() + i * width, width);
          count += flag[i];
        }
        start[piece + 1] = count;
      }
    });
  });
  for (int64_t piece = 0; piece < pieces; ++piece) start[piece + 1] += start[piece];
  const int64_t n = start[pieces];
  out = empty({sparse_dim, n}, DType::kInt64, input.device());
  int64_t* to = out.data_as<int64_t>();
  parallel_for(pieces, 4, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      int64_t at = start[piece];
      for (int64_t i = piece * kPiece; i < std::min(parts, (piece + 1) * kPiece); ++i) {
        if (!flag[i]) continue;
        for (int64_t d = sparse_dim, rest = i; d-- > 0; rest /= size[d]) to[d * n + at] = rest % size[d];
        ++at;
      }
    }
  });
}

}  // namespace tt::cpu
