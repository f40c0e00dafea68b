#include "kernels/cuda/pointwise.h"

#include "engine/op_ids.h"
#include "kernels/common/element.h"
#include "kernels/cuda/access.h"
#include "kernels/cuda/pointwise_rows.h"
#include "kernels/cuda/vectors.h"

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

// x ** n for the exponents that people write: far cheaper than pow, and exact. The operator of x alone that it is; 0 for
// none.
uint16_t power(const ChainStep& step) {
  if (step.op->id != op_id::kPow || !step.args[1].is_number()) return 0;
  const double n = step.args[1].to_double();
  if (n == 2) return op_id::kSquare;
  if (!is_floating(step.compute)) return 0;
  return n == 0.5 ? op_id::kSqrt : n == -0.5 ? op_id::kRsqrt : n == -1 ? op_id::kReciprocal : 0;
}

template <typename C>
class Caller {
 public:
  Caller(const ChainStep& step, const Tensor& out) : step_(step), out_(out) {
    call_.out = out.data();
    call_.dtype = out.dtype();
    call_.sizes = out.sizes();
    call_.strides = out.strides();
    call_.numel = out.numel();
    call_.is_plain = out.is_contiguous() && is_aligned(out.data());
    const uint16_t simpler = power(step);
    const size_t count = simpler ? 1 : step.args.size();
    for (size_t i = 0; i < count; ++i) add(step.op->params[i].type == ParamType::kTensor, step.args[i]);
    row_ = &row_of(simpler ? simpler : step.op->id);
  }

  void run() {
    const Launch<C> launch = launch_of<C>(*row_, step_.compute);
    check_as(ErrorKind::kNotImplemented, launch != nullptr, "not implemented for ", name(step_.compute));
    if (call_.numel == 0) return;
    const Queue queue = queue_of(out_);
    if (std::is_integral_v<C> && row_->divisor >= 0) call_.fault = open_fault(queue, &divided_by_zero);
    launch(queue, call_);
  }

 private:
  void add(bool is_operand, const Arg& arg) {
    if (!is_operand) {
      call_.numbers.value[num_numbers_] = arg.is_none() ? C{} : number_as<C>(arg, step_.compute);
      call_.numbers.present |= uint32_t{!arg.is_none()} << num_numbers_;
      ++num_numbers_;
    } else if (arg.is_number()) {
      Source<C>& source = add_source();
      source.number = number_as<C>(arg, step_.compute);
    } else {
      add_tensor(Tensor::from(arg.tensor));
    }
  }

  Source<C>& add_source() {
    Source<C>& source = call_.in[num_inputs_++];
    source.strides.assign(out_.dim(), 0);
    return source;
  }

  void add_tensor(const Tensor& t) {
    Source<C>& source = add_source();
    if (t.device() != out_.device()) {  // a zero-dim tensor of the CPU: what it holds is at hand
      with_element(t.dtype(), [&]<typename T>(std::type_identity<T>) { source.number = convert<C>(*t.data_as<T>()); });
      return;
    }
    source.data = t.data();
    source.dtype = t.dtype();
    source.strides = broadcast_strides(t.sizes(), t.strides(), out_.sizes());
    call_.is_plain = call_.is_plain && t.dtype() == out_.dtype() && t.sizes() == out_.sizes() && t.is_contiguous() &&
                     is_aligned(t.data());
  }

  const ChainStep& step_;
  const Tensor& out_;
  PointwiseCall<C> call_;
  const PointwiseRow* row_;
  int num_inputs_ = 0;
  int num_numbers_ = 0;
};

void run_step(const ChainStep& step, const Tensor& out) {
  switch (step.compute) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32: return Caller<float>(step, out).run();
    case DType::kFloat64: return Caller<double>(step, out).run();
    case DType::kComplex64:
    case DType::kComplex128: fail(ErrorKind::kNotImplemented, "not implemented for ", name(step.compute));
    default: return Caller<int64_t>(step, out).run();
  }
}

void compute(Call& call) { run_step({call.op, call.args, call.inferred.compute}, call.outputs[0]); }

void pointwise(Call& call) {
  // Where a result lands in another dtype it must first wrap or round to its own.
  const bool converts = call.into && call.outputs[0] && call.outputs[0].dtype() != call.inferred.outputs[0].dtype;
  converts ? run_with_plain_outputs(call, &compute) : run_with_separate_outputs(call, &compute);
}

}  // namespace

void register_pointwise(Dispatcher& dispatcher) {
  for (const Op* op : all_ops()) {
    if (op->is_pointwise) dispatcher.set(op->id, Key::kCUDA, &pointwise);
  }
}

}  // namespace tt::cuda
