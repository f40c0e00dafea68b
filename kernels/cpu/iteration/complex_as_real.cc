#include "kernels/cpu/iteration/complex_as_real.h"

#include "engine/schema/op_ids.h"
#include "kernels/cpu/iteration/chain.h"
#include "kernels/cpu/iteration/copy.h"

namespace tt::cpu {

namespace {

void flip_sign_bit(const Tensor& t) {
  uint64_t* bits = t.data_as<uint64_t>();
  for (int64_t i = 0; i < t.numel(); ++i) bits[i] ^= uint64_t{1} << 63;
}

}  // namespace

Tensor magnitudes(const Tensor& t) {
  Tensor out = empty(t.sizes(), to_real(t.dtype()), t.device());
  const Arg args[] = {Arg(t.get())};
  const ChainStep step{find_op(op_id::kAbs), args, t.dtype()};
  run_chain({&step, 1}, out);
  return out;
}

Tensor ordered_bits(const Tensor& t) {
  if (t.dtype() != DType::kUInt64) return t;
  Tensor flipped = empty(t.sizes(), DType::kInt64, t.device());
  TensorMeta as_signed = t.meta();
  as_signed.dtype = DType::kInt64;
  copy(alias(t, as_signed), flipped);
  flip_sign_bit(flipped);
  return flipped;
}

void restore_bits(Tensor& t) {
  if (t.dtype() == DType::kUInt64) flip_sign_bit(t);
}

}  // namespace tt::cpu
