#include "kernels/cuda/pointwise.h"

#include "engine/op_ids.h"
#include "kernels/cuda/chain.h"
#include "kernels/cuda/pointwise_call.h"

namespace tt::cuda {

namespace {

const PointwiseRow& row_of(uint16_t op) {
  static const std::vector<const PointwiseRow*> rows = [] {
    std::vector<const PointwiseRow*> by_id(op_id::kMax + 1);
    for (const auto& file : pointwise_files()) {
      for (const PointwiseRow& row : file) by_id[row.op] = &row;
    }
    return by_id;
  }();
  return *rows[op];
}

template <typename C>
Launch<C> launch_of(const PointwiseRow& row, DType compute) {
  if constexpr (std::is_same_v<C, float>) return row.f32;
  else if constexpr (std::is_same_v<C, double>) return row.f64;
  else return compute == DType::kBool ? row.boolean : row.i64;
}

// Integers that the CPU computes in 32 bits wrap to them here, too.
template <typename C>
C number_as(const Arg& arg, DType compute) {
  if constexpr (std::is_floating_point_v<C>) {
    return static_cast<C>(arg.to_double());
  } else {
    const int64_t value = arg.kind == Arg::Kind::kFloat ? arg.scalar().to_int() : arg.integer;
    return compute == DType::kInt64 ? value : static_cast<int32_t>(value);
  }
}

Error divided_by_zero(const FaultCell&) { return Error(ErrorKind::kRuntime, "ZeroDivisionError"); }

template <typename C>
void add_argument(CallBuilder<C>& builder, const ChainStep& step, size_t i) {
  const Arg& arg = step.args[i];
  const bool is_operand = step.op->params[i].type == ParamType::kTensor;
  if (is_operand && !arg.is_number()) builder.add_tensor(Tensor::from(arg.tensor));
  else if (is_operand) builder.add_operand(number_as<C>(arg, step.compute));
  else if (arg.is_none()) builder.add_absent();
  else builder.add_number(number_as<C>(arg, step.compute));
}

template <typename C>
void run(const ChainStep& step, const Tensor& out) {
  const uint16_t simpler = power_of(step);
  const PointwiseRow& row = row_of(simpler ? simpler : step.op->id);
  const Launch<C> launch = launch_of<C>(row, step.compute);
  check_as(ErrorKind::kNotImplemented, launch != nullptr, "not implemented for ", name(step.compute));
  if (out.numel() == 0) return;
  CallBuilder<C> builder(out);
  for (size_t i = 0; i < (simpler ? 1 : step.args.size()); ++i) add_argument(builder, step, i);
  const Queue queue = queue_of(out);
  if (std::is_integral_v<C> && row.divisor >= 0) builder.call().fault = open_fault(queue, &divided_by_zero);
  launch(queue, builder.call());
}

void compute(Call& call) { run_step({call.op, call.args, call.inferred.compute}, call.outputs[0]); }

void pointwise(Call& call) {
  // Where a result lands in another dtype it must first wrap or round to its own.
  const bool converts = call.into && call.outputs[0] && call.outputs[0].dtype() != call.inferred.outputs[0].dtype;
  converts ? run_with_plain_outputs(call, &compute) : run_with_separate_outputs(call, &compute);
}

}  // namespace

uint16_t power_of(const ChainStep& step) {
  if (step.op->id != op_id::kPow || !step.args[1].is_number()) return 0;
  const double n = step.args[1].to_double();
  if (n == 2) return op_id::kSquare;
  if (!is_floating(step.compute)) return 0;
  return n == 0.5 ? op_id::kSqrt : n == -0.5 ? op_id::kRsqrt : n == -1 ? op_id::kReciprocal : 0;
}

bool divides(uint16_t op) { return row_of(op).divisor >= 0; }

void run_step(const ChainStep& step, const Tensor& out) {
  switch (step.compute) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32: return run<float>(step, out);
    case DType::kFloat64: return run<double>(step, out);
    case DType::kComplex64:
    case DType::kUInt64:  // its bits are not all that int64 needs
    case DType::kComplex128:
      fail(ErrorKind::kNotImplemented, "is not implemented for ", out.device(), " in ", name(step.compute));
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
