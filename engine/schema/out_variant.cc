// check_out_variant(): whether a result may be written to an existing tensor.

#include "engine/schema/error.h"
#include "engine/schema/op.h"

namespace tt {
namespace {

bool overlaps_itself(const TensorMeta& t) {
  bool repeats = false;
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    if (t.sizes[d] == 0) return false;
    repeats |= t.sizes[d] > 1 && t.strides[d] == 0;
  }
  return repeats;
}

template <typename... Parts>
[[noreturn]] void refuse(const Op& op, const Parts&... parts) {
  Error error(ErrorKind::kRuntime, absl::StrCat(message_part(parts)...));
  error.set_op(op.name);
  throw error;
}

}  // namespace

void check_out_variant(const Op& op, const TensorMeta& result, const TensorMeta& target, bool target_is_leaf,
                       bool grad_enabled) {
  if (grad_enabled && target.requires_grad && target_is_leaf) [[unlikely]] {
    refuse(op, "a leaf Variable that requires grad is being used in an in-place operation.");
  }
  if (result.device != target.device) [[unlikely]] {
    refuse(op, "Expected all tensors to be on the same device, but found at least two devices, ", result.device,
           " and ", target.device, "!");
  }
  if (!can_cast(result.dtype, target.dtype)) [[unlikely]] {
    refuse(op, "result type ", scalar_type_name(result.dtype), " can't be cast to the desired output type ",
           scalar_type_name(target.dtype));
  }
  if (!op.is_dynamic && result.sizes != target.sizes) [[unlikely]] {
    refuse(op, "output with shape ", target.sizes, " doesn't match the broadcast shape ", result.sizes);
  }
  if (overlaps_itself(target)) [[unlikely]] {
    refuse(op,
           "unsupported operation: more than one element of the written-to tensor refers to a single memory "
           "location. Please clone() the tensor before performing the operation.");
  }
}

void check_out(const Op& op, const TensorMeta& result, const TensorMeta& target) {
  if (op.out == OutRule::kCast || result.dtype == target.dtype) return;
  refuse(op, "Expected out tensor to have dtype ", cpp_type_name(result.dtype), ", but got ",
         cpp_type_name(target.dtype), " instead");
}

}  // namespace tt
