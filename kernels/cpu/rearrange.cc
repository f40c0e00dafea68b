// Operators that move elements within a tensor: flip, roll, triangles, diagonals.
#include <algorithm>
#include <cstring>

#include "engine/rules/shape_rules.h"
#include "kernels/cpu/copy.h"
#include "kernels/common/element.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/nest.h"

namespace tt::cpu {

void flip(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out) {
  if (input.numel() == 0) return;
  Sizes strides = input.strides();
  int64_t start = 0;  // the element that comes first
  for (int64_t dim : dims) {
    if (input.dim() == 0) break;
    const int64_t d = shape_rules::wrap_dim(dim, input.dim());
    start += (input.size(d) - 1) * input.stride(d);
    strides[d] = -strides[d];
  }
  const Nest<2> nest(out.sizes(), {out.strides(), strides});
  with_bits(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t to_step = nest.stride(0), step = nest.stride(1);
    nest.walk_in_parallel([&](const Nest<2>::Offsets& at, int64_t) {
      T* to = out.data_as<T>() + at[0];
      const T* from = input.data_as<T>() + start + at[1];
      if (to_step == 1 && step == 1) {
        std::memcpy(to, from, nest.length() * sizeof(T));
      } else {
        for (int64_t i = 0; i < nest.length(); ++i) to[i * to_step] = from[i * step];
      }
    });
  });
}

namespace {

// Copies input to out, rolled along the dimensions from `first` on: each splits into what moves up
// and what comes in at the start.
void roll_from(size_t first, absl::Span<const int64_t> shifts, absl::Span<const int64_t> dims, const Tensor& input,
               const Tensor& out) {
  if (first == dims.size()) return copy(input, out);
  const int64_t d = shape_rules::wrap_dim(dims[first], input.dim()), size = input.size(d);
  const int64_t shift = (shifts[first] % size + size) % size;
  auto part = [d](const Tensor& t, int64_t start, int64_t length) {
    Geometry geometry{t.sizes(), t.strides(), t->offset + start * t.stride(d)};
    geometry.sizes[d] = length;
    return view_of(t, geometry);
  };
  roll_from(first + 1, shifts, dims, part(input, 0, size - shift), part(out, shift, size - shift));
  if (shift > 0) roll_from(first + 1, shifts, dims, part(input, size - shift, shift), part(out, 0, shift));
}

}  // namespace

void roll(const Tensor& input, absl::Span<const int64_t> shifts, absl::Span<const int64_t> dims, Tensor& out) {
  if (input.numel() == 0) return;
  if (!dims.empty() && input.dim() > 0) return roll_from(0, shifts, dims, input, out);
  // Of the flattened tensor, which is copied where it does not lie flat.
  Tensor flat = input;
  if (!input.is_contiguous()) copy(input, flat = empty(input.sizes(), input.dtype(), input.device()));
  const int64_t along = 0;
  const Geometry line{{input.numel()}, {1}, 0};
  auto as_line = [&](const Tensor& t) { return view_of(t, Geometry{line.sizes, line.strides, t->offset}); };
  roll_from(0, shifts.first(1), {&along, 1}, as_line(flat), as_line(out));
}

namespace {

// Zeroes, in each row i of out's matrices, the columns [from(i), to(i)).
template <typename From, typename To>
void clear_columns(const Tensor& out, From from, To to) {
  const int64_t rows = out.size(-2), cols = out.size(-1);
  const size_t item = item_size(out.dtype());
  char* data = out.data_as<char>();
  for (int64_t r = 0; r < out.numel() / cols; ++r) {
    const int64_t begin = std::clamp<int64_t>(from(r % rows), 0, cols);
    const int64_t end = std::clamp<int64_t>(to(r % rows), 0, cols);
    if (begin < end) std::memset(data + (r * cols + begin) * item, 0, (end - begin) * item);
  }
}

// `i + diagonal`, which a client may have made overflow.
int64_t column_of(int64_t i, int64_t diagonal) {
  int64_t column;
  if (__builtin_add_overflow(i, diagonal, &column)) return diagonal < 0 ? INT64_MIN : INT64_MAX - 1;
  return std::min(column, INT64_MAX - 1);
}

}  // namespace

void tril(const Tensor& input, int64_t diagonal, Tensor& out) {
  if (input.numel() == 0) return;
  copy(input, out);
  clear_columns(
      out, [=](int64_t i) { return column_of(i, diagonal) + 1; }, [&](int64_t) { return out.size(-1); });
}

void triu(const Tensor& input, int64_t diagonal, Tensor& out) {
  if (input.numel() == 0) return;
  copy(input, out);
  clear_columns(
      out, [](int64_t) { return 0; }, [=](int64_t i) { return column_of(i, diagonal); });
}

void diag_embed(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2, Tensor& out) {
  fill_with(out, Scalar(false));
  if (input.numel() == 0) return;
  dim1 = shape_rules::wrap_dim(dim1, out.dim());
  dim2 = shape_rules::wrap_dim(dim2, out.dim());
  Geometry diagonal{{}, {}, out->offset + (offset > 0 ? offset * out.stride(dim2) : -offset * out.stride(dim1))};
  for (int64_t d = 0; d < out.dim(); ++d) {
    if (d == dim1 || d == dim2) continue;
    diagonal.sizes.push_back(out.size(d));
    diagonal.strides.push_back(out.stride(d));
  }
  diagonal.sizes.push_back(input.size(-1));
  diagonal.strides.push_back(out.stride(dim1) + out.stride(dim2));
  copy(input, view_of(out, diagonal));
}

}  // namespace tt::cpu
