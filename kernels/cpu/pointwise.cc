#include "kernels/cpu/pointwise.h"

#include <algorithm>
#include <vector>

#include "engine/op_ids.h"
#include "engine/rules/error.h"
#include "kernels/cpu/loop.h"

namespace tt::cpu {

namespace {

const PointwiseRow& row_of(const Op& op) {
  static const std::vector<const PointwiseRow*> rows = [] {
    std::vector<const PointwiseRow*> by_id(op_id::kMax + 1);
    for (int f = 0; f < blocks().num_files; ++f) {
      const PointwiseRows& file = blocks().files[f];
      for (int i = 0; i < file.count; ++i) by_id[file.rows[i].op] = &file.rows[i];
    }
    return by_id;
  }();
  return *rows[op.id];
}

template <typename C>
C number_as(const Arg& arg) {
  if constexpr (std::is_floating_point_v<C>) return static_cast<C>(arg.to_double());
  else return static_cast<C>(arg.kind == Arg::Kind::kFloat ? arg.scalar().to_int() : arg.integer);
}

// A call's arguments, apart: tensors (or numbers in their place) and parameters.
template <typename C>
struct Arguments {
  const Arg* operands[kMaxStepInputs];
  int num_operands = 0;
  Step<C> step;

  explicit Arguments(const Call& call) {
    int numbers = 0;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Arg& arg = call.args[i];
      if (call.op->params[i].type == ParamType::kTensor) {
        operands[num_operands++] = &arg;
        continue;
      }
      step.numbers.value[numbers] = arg.is_none() ? C{} : number_as<C>(arg);
      step.numbers.present |= uint32_t{!arg.is_none()} << numbers;
      ++numbers;
    }
  }
};

// All operands lie as the output does, in the type of the computation: one call does it.
template <typename C>
bool run_plain(const Arguments<C>& arguments, const Tensor& out) {
  constexpr int64_t kSmall = 4 * kBlock;
  if (out.dtype() != kDTypeOf<C> || !out.is_contiguous()) return false;
  const int64_t n = out.numel();
  if (n > kSmall) return false;
  const C* in[kMaxStepInputs];
  C constant[kSmall];
  bool has_constant = false;
  for (int i = 0; i < arguments.num_operands; ++i) {
    const Arg& arg = *arguments.operands[i];
    if (arg.is_number()) {
      if (has_constant) return false;
      has_constant = true;
      std::fill_n(constant, n, number_as<C>(arg));
      in[i] = constant;
      continue;
    }
    const TensorMeta& meta = *arg.tensor;
    if (meta.dtype != kDTypeOf<C> || meta.sizes != out.sizes() || !meta.is_contiguous()) return false;
    in[i] = Tensor::from(arg.tensor).data_as<const C>();
  }
  if (n > 0) arguments.step.function(n, in, out.data_as<C>(), arguments.step.numbers);
  return true;
}

template <typename C>
void run_general(Arguments<C>& arguments, const Tensor& out) {
  Space space(out.sizes());
  absl::InlinedVector<Access, kMaxStepInputs + 1> accesses;
  std::array<LoopInput<C>, kMaxStepInputs> inputs;
  bool reads_output = false;
  for (int i = 0; i < arguments.num_operands; ++i) {
    const Arg& arg = *arguments.operands[i];
    arguments.step.args[i] = static_cast<uint8_t>(i);
    if (arg.is_number()) {
      inputs[i].number = number_as<C>(arg);
      continue;
    }
    const Tensor t = Tensor::from(arg.tensor);
    reads_output |= t->storage.get() == out->storage.get();
    accesses.push_back(space.access(t));
  }
  accesses.push_back(space.access(out));
  space.collapse(absl::MakeSpan(accesses));
  size_t next = 0;
  for (int i = 0; i < arguments.num_operands; ++i) {
    if (!arguments.operands[i]->is_number()) inputs[i].access = &accesses[next++];
  }
  const bool past_cache = !reads_output && streams(space.numel * static_cast<int64_t>(sizeof(C)));
  Loop<C> loop(space, absl::MakeConstSpan(inputs.data(), arguments.num_operands), {&arguments.step, 1},
               accesses.back(), past_cache);
  loop.run();
}

template <typename C>
void run(Call& call, const PointwiseRow& row, BlockFunction<C> function) {
  check_as(ErrorKind::kNotImplemented, function != nullptr, "not implemented for ", name(call.inferred.compute));
  Arguments<C> arguments(call);
  arguments.step.function = function;
  arguments.step.num_args = row.num_inputs;
  if (std::is_integral_v<C>) arguments.step.divisor = row.divisor;
  const Tensor& out = call.outputs[0];
  if (arguments.step.divisor < 0 && run_plain(arguments, out)) return;
  run_general(arguments, out);
}

void compute(Call& call) {
  const PointwiseRow& row = row_of(*call.op);
  switch (call.inferred.compute) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32: return run<float>(call, row, row.f32);
    case DType::kFloat64: return run<double>(call, row, row.f64);
    case DType::kInt64: return run<int64_t>(call, row, row.i64);
    case DType::kBool: return run<int32_t>(call, row, row.boolean);
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32: return run<int32_t>(call, row, row.i32);
    default: fail(ErrorKind::kNotImplemented, "not implemented for ", name(call.inferred.compute));
  }
}

void pointwise(Call& call) {
  // Where a result lands in another dtype it must first wrap or round to its own.
  const bool converts = call.into && call.outputs[0] && call.outputs[0].dtype() != call.inferred.outputs[0].dtype;
  converts ? run_with_plain_outputs(call, &compute) : run_with_separate_outputs(call, &compute);
}

}  // namespace

void register_pointwise(Dispatcher& dispatcher) {
  for (const Op* op : all_ops()) {
    if (op->is_pointwise) dispatcher.set(op->id, Key::kCPU, &pointwise);
  }
}

}  // namespace tt::cpu
