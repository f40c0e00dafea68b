#include "kernels/cuda/reduce/ordered_bits.h"

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

namespace {

struct FlipSignBit {
  Layout<2> layout;
  const uint64_t* from;
  uint64_t* to;
  TT_DEVICE void operator()(int64_t i) const {
    const Offsets<2> at = layout.offsets(i);
    to[at.at[1]] = from[at.at[0]] ^ uint64_t { 1 } << 63;
  }
};

void flip_sign_bit(const Tensor& from, const Tensor& to) {
  const Layout<2> layout(to.sizes(), {from.strides(), to.strides()});
  for_each(queue_of(to), to.numel(),
           FlipSignBit{layout, static_cast<const uint64_t*>(from.data()), static_cast<uint64_t*>(to.data())});
}

}  // namespace

Tensor ordered_bits(const Tensor& t) {
  if (t.dtype() != DType::kUInt64) return t;
  const Tensor flipped = empty(t.sizes(), DType::kInt64, t.device());
  flip_sign_bit(t, flipped);
  return flipped;
}

void restore_bits(const Tensor& t) {
  if (t.dtype() == DType::kUInt64) flip_sign_bit(t, t);
}

}  // namespace tt::cuda
