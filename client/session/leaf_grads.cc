#include "client/session/leaf_grads.h"

#include <utility>
#include <vector>

#include "client/session/operand.h"
#include "client/session/program_trace.h"
#include "client/session/session.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt::client {

void set_grads(absl::Span<const Tensor> leaves, absl::Span<const Tensor> grads, uint32_t site) {
  check(leaves.size() == grads.size(), "got ", leaves.size(), " tensors and ", grads.size(), " gradients");
  if (leaves.empty()) return;
  for (size_t i = 0; i < leaves.size(); ++i) {
    check(!grads[i] || grads[i]->sizes == leaves[i]->sizes, "assigned grad has data of a different size");
  }
  if (ProgramTrace* trace = ProgramTrace::of(*leaves[0]->session)) [[unlikely]] {
    for (size_t i = 0; i < leaves.size(); ++i) trace->set_grad(leaves[i], grads[i]);
    return;
  }
  const ListArg of(leaves), to(grads);
  const Arg args[] = {of.arg(), to.arg()};
  leaves[0]->session->call_with_metas(*find_op(op_id::kSetGrads), args, {}, {.site = site});
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i]->grad = grads[i];
}

void accumulate_grads(absl::Span<const Tensor> leaves, absl::Span<const Tensor> grads, bool replace, uint32_t site) {
  if (leaves.empty()) return;
  const ListArg of(leaves), added(grads);
  const Arg args[] = {of.arg(), added.arg(), replace};
  std::vector<TensorMeta> metas;
  for (size_t i = 0; i < grads.size() && !replace; ++i) metas.push_back(*grads[i]);
  const Tensors sums = leaves[0]->session->call_with_metas(*find_op(op_id::kAccumulateGrads), args, metas,
                                                           {.grad = false, .site = site});
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (replace) {
      leaves[i]->grad = grads[i];
    } else {
      keep_accumulated(*leaves[i], sums[i]);
    }
  }
}

void keep_accumulated(Handle& leaf, Tensor gradient) {
  check(ErrorKind::kNotImplemented, !leaf.grad || !leaf.grad->stands_for,
        "[backward] a leaf has a sparse gradient, to which this pass cannot add a strided one");
  if (leaf.grad) {
    // Uses the id of the new result, because a failed pass poisons it.
    std::swap(leaf.grad->id, gradient->id);
    leaf.grad->bump_version();
  } else {
    leaf.grad = std::move(gradient);
  }
}

}  // namespace tt::client
