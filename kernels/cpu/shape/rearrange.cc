// flip and the triangles of matrices.
#include <algorithm>
#include <cstring>

#include "kernels/common/iteration/element.h"
#include "kernels/common/shape/rearrange.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/iteration/strided_loop.h"
#include "kernels/cpu/iteration/transpose.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

namespace {

// Copies in reverse order: to[i] = from[-i].
template <typename T>
TT_CLONES void reverse_row(const T* __restrict from, T* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
}

// Runs a flip that is also a transposition, such as a rotation by 90 degrees. Returns false, without copying, for other
// flips.
bool transpose_reversed(const Tensor& input, const FlippedView& from_end, const Tensor& out) {
  Space space(out.sizes());
  Access accesses[] = {space.access(input), space.access(out)};
  accesses[0].data += from_end.start * static_cast<int64_t>(item_size(input.dtype()));
  for (size_t d = 0; d < space.sizes.size(); ++d) accesses[0].strides[d] = from_end.strides[d];
  space.collapse(accesses);
  return transpose(space, accesses[0], accesses[1]);
}

}  // namespace

void flip(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out) {
  if (input.numel() == 0) return;
  const FlippedView from_end(input, dims);
  if (transpose_reversed(input, from_end, out)) return;
  const StridedLoop<2> loop(out.sizes(), {out.strides(), from_end.strides});
  with_bits(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    const int64_t to_step = loop.stride(0), step = loop.stride(1);
    loop.parallel_for_row_pieces([&](const StridedLoop<2>::Offsets& at, int64_t n) {
      T* to = out.data_as<T>() + at[0];
      const T* from = input.data_as<T>() + from_end.start + at[1];
      if (to_step == 1 && step == 1) {
        std::memcpy(to, from, n * sizeof(T));
      } else if (to_step == 1 && step == -1) {  // vectorises, unlike arbitrary strides
        reverse_row(from, to, n);
      } else {
        for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * step];
      }
    });
  });
}

namespace {

// Sets columns [from(i), to(i)) of each row i of out's matrices to zero.
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

}  // namespace

void tril(const Tensor& input, int64_t diagonal, Tensor& out) {
  if (input.numel() == 0) return;
  copy(input, out);
  clear_columns(
      out, [=](int64_t i) { return diagonal_column(i, diagonal) + 1; }, [&](int64_t) { return out.size(-1); });
}

void triu(const Tensor& input, int64_t diagonal, Tensor& out) {
  if (input.numel() == 0) return;
  copy(input, out);
  clear_columns(
      out, [](int64_t) { return 0; }, [=](int64_t i) { return diagonal_column(i, diagonal); });
}

}  // namespace tt::cpu
