#include "kernels/cpu/parts.h"

#include "engine/op_ids.h"
#include "engine/rules/shape_rules.h"
#include "kernels/cpu/chain.h"
#include "kernels/cpu/copy.h"

namespace tt::cpu {

namespace {

// Counted in reals.
TensorMeta real_meta(const Tensor& t, int64_t which) {
  TensorMeta meta = t.meta();
  meta.dtype = to_real(t.dtype());
  for (int64_t& stride : meta.strides) stride *= 2;
  meta.offset = 2 * meta.offset + which;
  return meta;
}

void turn_highest_bit(const Tensor& t) {
  uint64_t* bits = t.data_as<uint64_t>();
  for (int64_t i = 0; i < t.numel(); ++i) bits[i] ^= uint64_t{1} << 63;
}

}  // namespace

Tensor parts(const Tensor& t) {
  TensorMeta meta = real_meta(t, 0);
  meta.sizes.push_back(2);
  meta.strides.push_back(1);
  return alias(t, meta);
}

Tensor part(const Tensor& t, int which) { return alias(t, real_meta(t, which)); }

Tensor magnitudes(const Tensor& t) {
  Tensor out = empty(t.sizes(), to_real(t.dtype()), t.device());
  const Arg args[] = {Arg(t.get())};
  const ChainStep step{find_op(op_id::kAbs), args, t.dtype()};
  run_chain({&step, 1}, out);
  return out;
}

Sizes dims_of_parts(const Tensor& t, const std::optional<absl::Span<const int64_t>>& dims) {
  Sizes result;
  if (!dims || dims->empty() || t.dim() == 0) {
    for (int64_t d = 0; d < t.dim(); ++d) result.push_back(d);
  } else {
    for (int64_t d : *dims) result.push_back(shape_rules::wrap_dim(d, t.dim()));
  }
  return result;
}

Tensor ordered_bits(const Tensor& t) {
  if (t.dtype() != DType::kUInt64) return t;
  Tensor turned = empty(t.sizes(), DType::kInt64, t.device());
  TensorMeta as_signed = t.meta();
  as_signed.dtype = DType::kInt64;
  copy(alias(t, as_signed), turned);
  turn_highest_bit(turned);
  return turned;
}

void restore_bits(Tensor& t) {
  if (t.dtype() == DType::kUInt64) turn_highest_bit(t);
}

}  // namespace tt::cpu
