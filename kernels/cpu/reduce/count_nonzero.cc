#include "kernels/cpu/reduce/count_nonzero.h"

#include <type_traits>

#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/reduce/fold_into.h"

namespace tt::cpu {

namespace {

// Calls f with the type in which elements of `dtype` are tested for 0: the element type, or uint8_t after conversion.
template <typename F>
void with_nonzero_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32: return f(std::type_identity<float>());
    case DType::kFloat64: return f(std::type_identity<double>());
    case DType::kInt64: return f(std::type_identity<int64_t>());
    default: return f(std::type_identity<uint8_t>());
  }
}

// Converts a complex tensor to bool (true if either part is nonzero). Returns other tensors unchanged.
Tensor nonzero_mask(const Tensor& t) { return is_complex(t.dtype()) ? contiguous_as(t, DType::kBool) : t; }

// Stores result(number of nonzero elements) in each output.
template <typename Result>
void result_into(const Tensor& input, const ReducePlan& plan, Tensor& out, Result result) {
  with_nonzero_type(input.dtype(),
                    [&]<typename T>(std::type_identity<T>) { fold_into<Count<T>>(input, plan, out, result); });
}

}  // namespace

void count_into(const Tensor& input, const ReducePlan& plan, Tensor& out) {
  result_into(input, plan, out, [](int64_t count) { return count; });
}

int64_t count_true(const Tensor& t) {
  const Tensor x = nonzero_mask(t);
  int64_t result = 0;
  with_nonzero_type(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    reduce(Fold<Count<T>>(), x, ReducePlan(x, {}, Order::kAny),
           [&](int64_t, const int64_t* totals, int64_t) { result = totals[0]; });
  });
  return result;
}

void any(const Tensor& input, OptionalDims dim, bool, Tensor& out) {
  const NamedReduction named(nonzero_mask(input), dim);
  result_into(named.input, reduction_plan(named.input, named.dims), out,
              [](int64_t count) { return static_cast<uint8_t>(count > 0); });
}

void all(const Tensor& input, OptionalDims dim, bool, Tensor& out) {
  const NamedReduction named(nonzero_mask(input), dim);
  const ReducePlan plan = reduction_plan(named.input, named.dims);
  result_into(named.input, plan, out, [&](int64_t count) { return static_cast<uint8_t>(count == plan.count); });
}

void count_nonzero(const Tensor& input, OptionalDims dim, Tensor& out) {
  const Tensor x = nonzero_mask(input);
  count_into(x, reduction_plan(x, dim), out);
}

}  // namespace tt::cpu
