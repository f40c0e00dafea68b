// flip, tril and triu.
#include "kernels/common/shape/rearrange.h"

#include "kernels/common/iteration/element.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

namespace {

template <typename T>
void flip_elements(const Tensor& input, const FlippedView& reversed, Tensor& out) {
  const Layout<1> layout(out.sizes(), {reversed.strides});
  const T* from = input.data_as<T>() + reversed.start;
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) { to[i] = from[layout.offsets(i).at[0]]; });
}

// Copies the elements of each row from the diagonal on if `upper`, else the elements up to the diagonal. Writes zeros
// elsewhere.
template <typename T>
void keep_triangle(const Tensor& input, int64_t diagonal, bool upper, Tensor& out) {
  const Layout<1> layout(input.sizes(), {input.strides()});
  const int64_t rows = out.size(-2), columns = out.size(-1);
  const T* from = input.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) {
    const int64_t column = i % columns, first = diagonal_column(i / columns % rows, diagonal);
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
  const FlippedView reversed(input, dims);
  with_bits(input.dtype(), [&]<typename T>(std::type_identity<T>) { flip_elements<T>(input, reversed, out); });
}

void tril(const Tensor& input, int64_t diagonal, Tensor& out) { triangle(input, diagonal, false, out); }

void triu(const Tensor& input, int64_t diagonal, Tensor& out) { triangle(input, diagonal, true, out); }

}  // namespace tt::cuda
