#include "kernels/cuda/pointwise/pointwise.h"

#include <algorithm>

#include "engine/schema/op_ids.h"
#include "kernels/common/iteration/permuted_chain.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/pointwise/chain.h"
#include "kernels/cuda/pointwise/pointwise_call.h"

namespace tt::cuda {

namespace {

template <typename Row>
std::vector<const Row*> by_id(const std::vector<absl::Span<const Row>>& files) {
  std::vector<const Row*> rows(op_id::kMax + 1);
  for (const auto& file : files) {
    for (const Row& row : file) rows[row.op] = &row;
  }
  return rows;
}

const PointwiseRow& row_of(uint16_t op) {
  static const std::vector<const PointwiseRow*> rows = by_id(pointwise_files());
  return *rows[op];
}

const ExtendedDTypeRow& extended_row_of(uint16_t op) {
  static const std::vector<const ExtendedDTypeRow*> rows = by_id(extended_files());
  return *rows[op];
}

// Returns null if the operator does not compute in C.
template <typename C>
Launch<C> launch_of(uint16_t op, DType compute) {
  if constexpr (std::is_same_v<C, float>)
    return row_of(op).f32;
  else if constexpr (std::is_same_v<C, double>)
    return row_of(op).f64;
  else if constexpr (std::is_same_v<C, Complex<float>>)
    return extended_row_of(op).c64;
  else if constexpr (std::is_same_v<C, Complex<double>>)
    return extended_row_of(op).c128;
  else if constexpr (std::is_same_v<C, uint64_t>)
    return extended_row_of(op).u64;
  else
    return compute == DType::kBool ? row_of(op).boolean : row_of(op).i64;
}

// Converts a number to C. Wraps integers to 32 bits if the CPU computes in 32 bits.
template <typename C>
C number_as(const Arg& arg, DType compute) {
  if constexpr (std::is_floating_point_v<C>) {
    return static_cast<C>(arg.to_double());
  } else if constexpr (is_complex_v<C>) {
    return C(Complex<double>(arg.to_double(), arg.kind == Arg::Kind::kComplex ? arg.imaginary : 0));
  } else {
    const int64_t value = arg.kind == Arg::Kind::kFloat ? arg.scalar().to_int() : arg.integer;
    return static_cast<C>(item_size(compute) == 8 ? value : static_cast<int32_t>(value));
  }
}

Error divided_by_zero(const DeviceErrorCell&) { return Error(ErrorKind::kRuntime, "ZeroDivisionError"); }

template <typename C>
void add_argument(CallBuilder<C>& builder, const ChainStep& step, size_t i) {
  const Arg& arg = step.args[i];
  const bool is_operand = step.op->params[i].type == ParamType::kTensor;
  if (is_operand && !arg.is_number())
    builder.add_tensor(Tensor::from(arg.tensor));
  else if (is_operand)
    builder.add_operand(number_as<C>(arg, step.compute));
  else if (arg.is_none())
    builder.add_absent();
  else
    builder.add_number(number_as<C>(arg, step.compute));
}

// Returns the operator that computes the step: for common powers, a simpler one (power_of()).
uint16_t op_of(const ChainStep& step) {
  const uint16_t simpler = power_of(step);
  return simpler ? simpler : step.op->id;
}

template <typename C>
void run(const ChainStep& step, const Tensor& out) {
  const uint16_t op = op_of(step);
  const Launch<C> launch = launch_of<C>(op, step.compute);
  check(ErrorKind::kNotImplemented, launch != nullptr, "not implemented for ", name(step.compute));
  if (out.numel() == 0) return;
  CallBuilder<C> builder(out);
  for (size_t i = 0; i < (op == step.op->id ? step.args.size() : 1); ++i) add_argument(builder, step, i);
  const Queue queue = queue_of(out);
  if (std::is_integral_v<C> && divides(op)) builder.call().fault = open_error_cell(queue, &divided_by_zero);
  launch(queue, builder.call());
}

bool is_float8_tensor(const Arg& arg) { return arg.kind == Arg::Kind::kTensor && is_float8(arg.tensor->dtype); }

bool has_float8_operand(const ChainStep& step, const Tensor& out) {
  return is_float8(out.dtype()) || std::any_of(step.args.begin(), step.args.end(), &is_float8_tensor);
}

// Converts 8-bit floating-point inputs to float32 for the step, so that kernels need not support them.
void run_widened(const ChainStep& step, const Tensor& out) {
  absl::InlinedVector<Arg, 6> args(step.args.begin(), step.args.end());
  Tensors kept;
  for (Arg& arg : args) {
    if (!is_float8_tensor(arg)) continue;
    kept.push_back(contiguous_as(Tensor::from(arg.tensor), DType::kFloat32));
    arg = Arg(kept.back().get());
  }
  const Tensor result = is_float8(out.dtype()) ? empty(out.sizes(), DType::kFloat32, out.device()) : out;
  run_step({step.op, args, step.compute}, result);
  if (!result.same(out)) copy(result, out);
}

void compute(Call& call) {
  const ChainStep step{call.op, call.args, call.inferred.compute};
  const auto run_one = [](absl::Span<const ChainStep> steps, const Tensor& out) { run_step(steps[0], out); };
  if (!run_permuted({&step, 1}, call.outputs[0], run_one)) run_step(step, call.outputs[0]);
}

void pointwise(Call& call) {
  // A result written to another dtype must first wrap or round to its own dtype.
  const bool converts = call.into && call.outputs[0] && call.outputs[0].dtype() != call.inferred.outputs[0].dtype;
  converts ? run_with_plain_outputs(call, &compute) : run_with_separate_outputs(call, &compute);
}

}  // namespace

uint16_t power_of(const ChainStep& step) {
  if (step.op->id != op_id::kPow || !step.args[1].is_real_number()) return 0;
  const double n = step.args[1].to_double();
  if (n == 2) return op_id::kSquare;
  if (!has_gradients(step.compute)) return 0;
  return n == 0.5 ? op_id::kSqrt : n == -0.5 ? op_id::kRsqrt : n == -1 ? op_id::kReciprocal : 0;
}

bool divides(uint16_t op) { return row_of(op).divisor >= 0; }

void run_step(const ChainStep& step, const Tensor& out) {
  if (has_float8_operand(step, out)) return run_widened(step, out);
  switch (step.compute) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32: return run<float>(step, out);
    case DType::kFloat64: return run<double>(step, out);
    case DType::kComplex64: return run<Complex<float>>(step, out);
    case DType::kComplex128: return run<Complex<double>>(step, out);
    case DType::kUInt64:
      return extended_row_of(op_of(step)).is_signless ? run<int64_t>(step, out) : run<uint64_t>(step, out);
    default: return run<int64_t>(step, out);
  }
}

void register_pointwise(Dispatcher& dispatcher) {
  for (const Op* op : all_ops()) {
    if (op->is_pointwise) dispatcher.set(op->id, Key::kCUDA, &pointwise);
  }
  dispatcher.set_chain_kernel(DeviceType::kCUDA, &run_chain);
}

}  // namespace tt::cuda
