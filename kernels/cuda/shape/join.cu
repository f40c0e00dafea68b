// Operators that join tensors or move elements within one tensor.
#include "kernels/common/join.h"

#include "kernels/common/element.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

void cat(const Tensors& tensors, int64_t dim, Tensor& out) { join::cat(&copy, tensors, dim, out); }

void stack(const Tensors& tensors, int64_t dim, Tensor& out) { join::stack(&copy, tensors, dim, out); }

void repeat(const Tensor& input, absl::Span<const int64_t> repeats, Tensor& out) {
  join::repeat(&copy, input, repeats, out);
}

void roll(const Tensor& input, absl::Span<const int64_t> shifts, absl::Span<const int64_t> dims, Tensor& out) {
  join::roll(&copy, input, shifts, dims, out);
}

void diag_embed(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2, Tensor& out) {
  fill_with(out, Scalar(false));
  if (input.numel() > 0) copy(input, join::diagonals_of(out, input.size(-1), offset, dim1, dim2));
}

namespace {

template <typename T>
void flip_elements(const Tensor& input, const join::FlippedView& reversed, Tensor& out) {
  const Layout<1> layout(out.sizes(), {reversed.strides});
  const T* from = input.data_as<T>() + reversed.start;
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) { to[i] = from[layout.offsets(i).at[0]]; });
}

// Keeps the columns on and above the diagonal (`upper`) or on and below it; the others become zeros.
template <typename T>
void keep_triangle(const Tensor& input, int64_t diagonal, bool upper, Tensor& out) {
  const Layout<1> layout(input.sizes(), {input.strides()});
  const int64_t rows = out.size(-2), columns = out.size(-1);
  const T* from = input.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) {
    const int64_t column = i % columns, first = join::diagonal_column(i / columns % rows, diagonal);
    const bool kept = upper ? column >= first : column <= first;
    to[i] = kept ? from[layout.offsets(i).at[0]] : T(0);
  });
}

void triangle(const Tensor& input, int64_t diagonal, bool upper, Tensor& out) {
  if (input.numel() == 0) return;
  with_bits(input.dtype(), [&]<typename T>(std::type_identity<T>) { keep_triangle<T>(input, diagonal, upper, out); });
}

}  // namespace

void flip(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out) {
  if (input.numel() == 0) return;
  const join::FlippedView reversed(input, dims);
  with_bits(input.dtype(), [&]<typename T>(std::type_identity<T>) { flip_elements<T>(input, reversed, out); });
}

void tril(const Tensor& input, int64_t diagonal, Tensor& out) { triangle(input, diagonal, false, out); }

void triu(const Tensor& input, int64_t diagonal, Tensor& out) { triangle(input, diagonal, true, out); }

}  // namespace tt::cuda
