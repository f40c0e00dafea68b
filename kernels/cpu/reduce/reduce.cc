// Sums and products, of tensors and of chains of pointwise operators.
#include <memory>
#include <type_traits>

#include "engine/schema/op_ids.h"
#include "engine/schema/rules/shape_rules.h"
#include "kernels/cpu/iteration/chain.h"
#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/reduce/chain_reduction.h"
#include "kernels/cpu/reduce/complex_reduce.h"
#include "kernels/cpu/reduce/count_nonzero.h"
#include "kernels/cpu/reduce/fold_into.h"

namespace tt::cpu {

namespace {

// The reductions of real numbers. With a source, `input` has no data (ReduceRun).
template <template <typename> typename Lifted>
void sum_into(const Tensor& input, const ReducePlan& plan, Tensor& out, const BlockSource* source = nullptr) {
  if (input.dtype() == DType::kBool && is_integral(out.dtype())) {
    return count_into(input, plan, out);
  }
  with_reduction_type(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    fold_into<Lifted<T>>(
        input, plan, out, [](const auto& total) { return static_cast<T>(total); }, source);
  });
}

void mean_into(const Tensor& input, const ReducePlan& plan, Tensor& out, const BlockSource* source = nullptr) {
  with_reduction_type(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const double count = static_cast<double>(plan.count);
    fold_into<Sum<T>>(
        input, plan, out, [count](const auto& total) { return static_cast<T>(total / count); }, source);
  });
}

void prod_into(const Tensor& input, const ReducePlan& plan, Tensor& out, const BlockSource* source = nullptr) {
  with_reduction_type(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    fold_into<Product<T>>(
        input, plan, out, [](const T& total) { return total; }, source);
  });
}

template <typename T>
using PlainSum = Sum<T, Identity>;
template <typename T>
using SumOfNumbers = Sum<T, NotNaN>;

// The sizes of a pointwise operator's result.
Sizes sizes_of(const ChainStep& step) {
  Sizes sizes;
  for (const Arg& arg : step.args) {
    if (arg.kind == Arg::Kind::kTensor) sizes = shape_rules::broadcast_sizes(sizes, arg.tensor->sizes);
  }
  return sizes;
}

}  // namespace

void run_chain_or_reduction(absl::Span<const ChainStep> steps, const Tensor& out) {
  const ChainStep& last = steps.back();
  if (last.op->is_pointwise) return run_chain(steps, out);
  const Tensor shape = empty(sizes_of(steps[0]), out.dtype(), Device{DeviceType::kMeta});
  const std::unique_ptr<BlockSource> values = chain_values(steps.first(steps.size() - 1), shape);
  const ReducePlan plan(shape, last.args[1].is_none() ? absl::Span<const int64_t>() : last.args[1].ints(), Order::kAny);
  check(ErrorKind::kValue, plan.outputs == out.numel(), "[", last.op->name, "] expected a chain with ", out.numel(),
        " results, got ", plan.outputs);
  Tensor to = out;
  switch (last.op->id) {
    case op_id::kSum: return sum_into<PlainSum>(shape, plan, to, values.get());
    case op_id::kNansum: return sum_into<SumOfNumbers>(shape, plan, to, values.get());
    case op_id::kMean: return mean_into(shape, plan, to, values.get());
    case op_id::kProd: return prod_into(shape, plan, to, values.get());
    default: fail(ErrorKind::kValue, "expected a reduction at the end of a chain, got ", last.op->name);
  }
}

void sum(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  if (is_complex(out.dtype())) {
    return reduce_parts(contiguous_as(input, out.dtype()), dim, out, [](const Tensor& x, SizesView dims, Tensor& to) {
      sum_into<PlainSum>(x, ReducePlan(x, dims, Order::kAny), to);
    });
  }
  sum_into<PlainSum>(input, reduction_plan(input, dim), out);
}

void nansum(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  sum_into<SumOfNumbers>(input, reduction_plan(input, dim), out);
}

void mean(const Tensor& input, OptionalDims dim, bool keepdim, std::optional<DType>, Tensor& out) {
  if (is_complex(out.dtype())) {
    return reduce_parts(contiguous_as(input, out.dtype()), dim, out,
                        [=](const Tensor& x, SizesView dims, Tensor& to) { mean(x, dims, keepdim, std::nullopt, to); });
  }
  mean_into(input, reduction_plan(input, dim), out);
}

void prod(const Tensor& input, OptionalDims dim, bool, std::optional<DType>, Tensor& out) {
  if (is_complex(out.dtype())) return complex_prod(input, dim.value_or(absl::Span<const int64_t>()), out);
  prod_into(input, reduction_plan(input, dim), out);
}

}  // namespace tt::cpu
