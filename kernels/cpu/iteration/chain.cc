#include "kernels/cpu/iteration/chain.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/mutex.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "kernels/common/iteration/permuted_chain.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/iteration/loop.h"

namespace tt::cpu {

const PointwiseRow& row_of(uint16_t op) {
  static const std::vector<const PointwiseRow*> rows = [] {
    std::vector<const PointwiseRow*> by_id(op_id::kMax + 1);
    for (int f = 0; f < blocks().num_files; ++f) {
      const PointwiseTable& file = blocks().files[f];
      for (int i = 0; i < file.count; ++i) by_id[file.rows[i].op] = &file.rows[i];
    }
    return by_id;
  }();
  return *rows[op];
}

namespace {

// Maximum number of elements that run_plain() computes.
constexpr int64_t kSmall = 4 * kBlock;

template <typename C>
C number_as(const Arg& arg) {
  if constexpr (std::is_same_v<C, BFloat16>) {  // the upper 16 bits; scalar_args_of() stores the lower ones
    BFloat16 upper;
    upper.bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(number_as<float>(arg)) >> 16);
    return upper;
  } else if constexpr (std::is_floating_point_v<C>)
    return static_cast<C>(arg.to_double());
  else if constexpr (is_complex_v<C>)
    return C(Complex<double>(arg.to_double(), arg.kind == Arg::Kind::kComplex ? arg.imaginary : 0));
  else
    return static_cast<C>(arg.kind == Arg::Kind::kFloat ? arg.scalar().to_int() : arg.integer);
}

template <typename C>
BlockFunction<C> function_of(const PointwiseRow& row, DType compute) {
  if constexpr (std::is_same_v<C, float>)
    return row.f32;
  else if constexpr (std::is_same_v<C, double>)
    return row.f64;
  else if constexpr (std::is_same_v<C, int64_t>)
    return compute == DType::kUInt64 ? row.u64 : row.i64;
  else if constexpr (std::is_same_v<C, Complex<float>>)
    return row.c64;
  else if constexpr (std::is_same_v<C, Complex<double>>)
    return row.c128;
  else if constexpr (std::is_same_v<C, BFloat16>)
    return row.bf16;
  else
    return compute == DType::kBool ? row.boolean : row.i32;
}

template <typename C>
Step<C> make_step(uint16_t op, DType compute) {
  const PointwiseRow& row = row_of(op);
  Step<C> step;
  step.function = function_of<C>(row, compute);
  check(ErrorKind::kNotImplemented, step.function != nullptr, "not implemented for ", name(compute));
  if constexpr (std::is_same_v<C, float> || std::is_same_v<C, double>) step.body = body_of(op);
  step.num_args = row.num_inputs;
  step.costly = row.costly;
  if (std::is_integral_v<C>) step.divisor = row.divisor;
  return step;
}

// The non-tensor parameters of a step.
template <typename C>
ScalarArgs<C> scalar_args_of(const ChainStep& step) {
  using Number = ComputedIn<C>;
  ScalarArgs<C> scalar_args;
  int n = 0, input = 0;
  for (size_t i = 0; i < step.args.size(); ++i) {
    const Arg& arg = step.args[i];
    if (step.op->params[i].type == ParamType::kTensor) {
      if (std::is_same_v<C, BFloat16> && arg.is_number()) {
        scalar_args.low_bits[input] = std::bit_cast<uint32_t>(number_as<float>(arg)) & 0xffff;
      }
      ++input;
      continue;
    }
    scalar_args.value[n] = arg.is_none() ? Number{} : number_as<Number>(arg);
    scalar_args.present |= uint32_t{!arg.is_none()} << n;
    ++n;
  }
  return scalar_args;
}

// Cheaper and more accurate operators for x ** n with common exponents n. The operators are applied to x in turn; a
// binary operator receives the previous result and x. Empty for other exponents.
absl::Span<const uint16_t> power(const ChainStep& step) {
  static constexpr uint16_t kSquare[] = {op_id::kSquare}, kCube[] = {op_id::kSquare, op_id::kMul},
                            kRoot[] = {op_id::kSqrt}, kInverse[] = {op_id::kReciprocal},
                            kInverseRoot[] = {op_id::kRsqrt};
  if (step.op->id != op_id::kPow || !step.args[1].is_real_number()) return {};
  const double n = step.args[1].to_double();
  if (n == 2) return kSquare;
  if (n == 3) return kCube;
  if (!has_gradients(step.compute)) return {};
  if (n == 0.5) return kRoot;
  if (n == -0.5) return kInverseRoot;
  if (n == -1) return kInverse;
  return {};
}

// Whether `t` is a large operand that the loop would read across its contiguous dimension. Copying it to a contiguous
// tensor first is faster.
bool needs_contiguous_copy(const Tensor& t, const Tensor& out) {
  constexpr int64_t kLarge = 1 << 16;
  if (t.numel() != out.numel() || t.numel() < kLarge || !out.is_contiguous()) return false;
  if (t.stride(-1) == 1 || t.stride(-1) == 0) return false;  // a broadcast operand is read in place
  return std::find(t.strides().begin(), t.strides().end(), 1) != t.strides().end();
}

// Collects the steps of a loop and the operands that they read.
template <typename C>
class Builder {
 public:
  Builder(absl::Span<const ChainStep> steps, const Tensor& out) : space_(out.sizes()) {
    for (const ChainStep& step : steps) add_operands(step, out);
    for (const ChainStep& step : steps) add(step);
    accesses_.push_back(space_.access(out));
    space_.collapse(absl::MakeSpan(accesses_));
  }

  void run() {
    const bool past_cache = !reads_output_ && bypasses_cache(space_.numel * static_cast<int64_t>(sizeof(C)));
    Loop<C> loop = make_loop(past_cache);
    check(loop.fits(), "expected a chain with fewer results in use at once");
    loop.run();
  }

  // The builder must outlive the loop.
  Loop<C> make_loop(bool past_cache, bool often = false) const {
    absl::InlinedVector<LoopInput<C>, kMaxStepInputs> inputs;
    size_t next = 0;
    for (const Operand& operand : operands_) {
      inputs.push_back({operand.tensor == nullptr ? nullptr : &accesses_[next++], operand.number});
    }
    return Loop<C>(space_, inputs, steps_, accesses_.back(), past_cache, often);
  }

  // Whether the loop reads the steps' arguments themselves, whose indices in `inputs` are then returned, in order.
  bool find_operands(absl::Span<const Tensor> inputs, std::vector<size_t>* indices) const {
    for (const Operand& operand : operands_) {
      if (operand.tensor == nullptr) continue;
      const auto at = std::find_if(inputs.begin(), inputs.end(),
                                   [&](const Tensor& input) { return input.get() == operand.tensor; });
      if (at == inputs.end()) return false;
      indices->push_back(static_cast<size_t>(at - inputs.begin()));
    }
    return kept_.empty();
  }

  // Replaces the operands, the tensors of steps that are kept, and the output by tensors of the same metadata.
  void rebind(absl::Span<const Tensor> inputs, absl::Span<const size_t> operands, absl::Span<const Tensor> kept,
              const Tensor& out) {
    for (size_t i = 0; i < operands.size(); ++i) accesses_[i].data = address_of(inputs[operands[i]]);
    accesses_.back().data = address_of(out);
    size_t next = 0;
    for (Step<C>& step : steps_) {
      if (step.kept != nullptr) step.kept = kept[next++].data_as<C>();
    }
  }

 private:
  struct Operand {
    const TensorMeta* tensor;  // null: a number
    C number;
  };

  static char* address_of(const Tensor& t) { return static_cast<char*>(t.data()); }

  // The register of an operand of the loop; the number of registers if there is none yet.
  size_t find(const Arg& arg) const {
    const C number = arg.is_number() ? number_as<C>(arg) : C{};
    const auto is_operand = [&](const Operand& known) {
      return arg.is_number() ? known.tensor == nullptr && std::memcmp(&known.number, &number, sizeof(C)) == 0
                             : known.tensor == arg.tensor;
    };
    return static_cast<size_t>(std::find_if(operands_.begin(), operands_.end(), is_operand) - operands_.begin());
  }

  // An operand that several steps read has one register.
  void add_operands(const ChainStep& step, const Tensor& out) {
    for (size_t i = 0; i < step.args.size(); ++i) {
      const Arg& arg = step.args[i];
      if (step.op->params[i].type != ParamType::kTensor || arg.kind == Arg::Kind::kSlot) continue;
      if (find(arg) != operands_.size()) continue;
      if (arg.is_number()) {
        operands_.push_back({nullptr, number_as<C>(arg)});
        continue;
      }
      Tensor t = Tensor::from(arg.tensor);
      reads_output_ |= t->storage.get() == out->storage.get();
      if (needs_contiguous_copy(t, out)) {
        kept_.push_back(empty(t.sizes(), t.dtype(), t.device()));
        copy(t, kept_.back());
        t = kept_.back();
      }
      operands_.push_back({arg.tensor, C{}});
      accesses_.push_back(space_.access(t));
    }
  }

  // Returns the register that holds an argument.
  uint8_t operand(const Arg& arg) const {
    return arg.kind == Arg::Kind::kSlot ? results_[arg.slot] : static_cast<uint8_t>(find(arg));
  }

  void add(const ChainStep& from) {
    if (const auto ops = power(from); !ops.empty()) {
      add_power(from, ops);
    } else {
      Step<C> step = make_step<C>(from.op->id, from.compute);
      step.scalar_args = scalar_args_of<C>(from);
      int next = 0;
      for (size_t i = 0; i < from.args.size(); ++i) {
        if (from.op->params[i].type == ParamType::kTensor) step.args[next++] = operand(from.args[i]);
      }
      steps_.push_back(step);
    }
    if (from.kept != nullptr) steps_.back().kept = from.kept->data_as<C>();
    results_.push_back(last_result());
  }

  void add_power(const ChainStep& from, absl::Span<const uint16_t> ops) {
    const uint8_t base = operand(from.args[0]);
    for (size_t i = 0; i < ops.size(); ++i) {
      Step<C> step = make_step<C>(ops[i], from.compute);
      step.args = {i == 0 ? base : last_result(), base};
      steps_.push_back(step);
    }
  }

  uint8_t last_result() const { return static_cast<uint8_t>(operands_.size() + steps_.size() - 1); }

  Space space_;
  bool reads_output_ = false;
  absl::InlinedVector<Operand, kMaxStepInputs> operands_;
  absl::InlinedVector<Access, kMaxStepInputs> accesses_;  // accesses to the tensor operands, then to the output
  absl::InlinedVector<Step<C>, 2> steps_;
  absl::InlinedVector<uint8_t, 2> results_;  // the register of each chain step's result
  Tensors kept_;                             // contiguous copies of operands
};

template <typename C>
class ChainValues final : public BlockSource {
 public:
  ChainValues(absl::Span<const ChainStep> steps, const Tensor& shape)
      : shape_(shape), builder_(steps, shape_), loop_(builder_.make_loop(/*past_cache=*/false)) {
    check(loop_.fits(), "expected a chain with fewer results in use at once");
  }
  void read(int64_t first, int64_t n, void* to) const override { loop_.compute(first, first + n, static_cast<C*>(to)); }

 private:
  const Tensor shape_;
  const Builder<C> builder_;
  mutable Loop<C> loop_;  // of which compute() changes only what is atomic
};

template <typename C>
class PreparedLoop final : public PreparedChain {
 public:
  PreparedLoop(absl::Span<const ChainStep> steps, absl::Span<const Tensor> inputs, const Tensor& out)
      : builder_(steps, out), loop_(builder_.make_loop(/*past_cache=*/false, /*often=*/true)) {
    is_complete_ = builder_.find_operands(inputs, &operands_) && loop_.fits() && loop_.can_repeat();
  }
  bool is_complete() const { return is_complete_; }

  bool run(absl::Span<const Tensor> inputs, absl::Span<const Tensor> kept, const Tensor& out) override {
    if (!mutex_.try_lock()) return false;
    const MutexLock lock(mutex_, std::adopt_lock);
    builder_.rebind(inputs, operands_, kept, out);
    loop_.run();
    return true;
  }

 private:
  Mutex mutex_;  // held while the loop refers to a call's tensors
  Builder<C> builder_;
  Loop<C> loop_;
  std::vector<size_t> operands_;  // indices of inputs
  bool is_complete_;
};

template <typename C>
std::unique_ptr<PreparedChain> prepare(absl::Span<const ChainStep> steps, absl::Span<const Tensor> inputs,
                                       const Tensor& out) {
  auto made = std::make_unique<PreparedLoop<C>>(steps, inputs, out);
  return made->is_complete() ? std::move(made) : nullptr;
}

// Runs a single operator in one call of its block function, if all operands are contiguous and in the type of the
// computation. Returns false, without writing, otherwise.
template <typename C>
bool run_plain(const ChainStep& from, const Tensor& out) {
  const int64_t n = out.numel();
  if (n > kSmall || out.dtype() != kDTypeOf<C> || !out.is_contiguous() || !power(from).empty()) return false;
  const Step<C> step = make_step<C>(from.op->id, from.compute);
  if (step.divisor >= 0) return false;
  const C* in[kMaxStepInputs];
  C constant[kSmall];
  bool has_constant = false;
  int next = 0;
  for (size_t i = 0; i < from.args.size(); ++i) {
    if (from.op->params[i].type != ParamType::kTensor) continue;
    const Arg& arg = from.args[i];
    if (arg.is_number()) {
      if (has_constant) return false;
      has_constant = true;
      std::fill_n(constant, n, number_as<C>(arg));
      in[next++] = constant;
      continue;
    }
    const TensorMeta& meta = *arg.tensor;
    if (meta.dtype != kDTypeOf<C> || meta.sizes != out.sizes() || !meta.is_contiguous()) return false;
    in[next++] = Tensor::from(arg.tensor).data_as<const C>();
  }
  if (n > 0) step.function(n, in, out.data_as<C>(), scalar_args_of<C>(from));
  return true;
}

// Whether the chain is a single operator that computes on bfloat16 as stored. Longer chains do not, because values
// between steps are not rounded.
bool computes_in_bfloat16(absl::Span<const ChainStep> steps, const Tensor& out) {
  if (steps.size() != 1 || out.dtype() != DType::kBFloat16) return false;
  const ChainStep& step = steps[0];
  const auto ops = power(step);
  if (ops.size() > 1 || !row_of(ops.empty() ? step.op->id : ops[0]).bf16) return false;
  for (size_t i = 0; i < step.args.size(); ++i) {
    const Arg& arg = step.args[i];
    const bool is_tensor = step.op->params[i].type == ParamType::kTensor && !arg.is_number();
    if (is_tensor && arg.tensor->dtype != DType::kBFloat16) return false;
  }
  return true;
}

template <typename C>
void run(absl::Span<const ChainStep> steps, const Tensor& out) {
  if (steps.size() == 1 && run_plain<C>(steps[0], out)) return;
  Builder<C>(steps, out).run();
}

}  // namespace

std::unique_ptr<BlockSource> chain_values(absl::Span<const ChainStep> steps, const Tensor& shape) {
  if (shape.dtype() == DType::kFloat64) return std::make_unique<ChainValues<double>>(steps, shape);
  return std::make_unique<ChainValues<float>>(steps, shape);
}

std::unique_ptr<PreparedChain> prepare_chain(absl::Span<const ChainStep> steps, absl::Span<const Tensor> inputs,
                                             const Tensor& out) {
  const bool is_random = std::any_of(steps.begin(), steps.end(), [](const ChainStep& s) { return s.op->is_random; });
  const int64_t bytes = out.numel() * static_cast<int64_t>(item_size(out.dtype()));
  if (is_random || !out.is_contiguous() || bypasses_cache(bytes)) return nullptr;
  if (steps[0].compute == DType::kFloat32) return prepare<float>(steps, inputs, out);
  if (steps[0].compute == DType::kFloat64) return prepare<double>(steps, inputs, out);
  return nullptr;
}

void run_chain(absl::Span<const ChainStep> steps, const Tensor& out) {
  if (run_permuted(steps, out, &run_chain)) return;
  switch (steps[0].compute) {
    case DType::kBFloat16:
      if (computes_in_bfloat16(steps, out)) return run<BFloat16>(steps, out);
      [[fallthrough]];
    case DType::kFloat16:
    case DType::kFloat8E4m3fn:  // infer() has replaced these by float32
    case DType::kFloat8E5m2:
    case DType::kFloat32: return run<float>(steps, out);
    case DType::kFloat64: return run<double>(steps, out);
    case DType::kComplex64: return run<Complex<float>>(steps, out);
    case DType::kComplex128: return run<Complex<double>>(steps, out);
    case DType::kInt64:
    case DType::kUInt32:
    case DType::kUInt64: return run<int64_t>(steps, out);
    case DType::kUInt16:
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32: return run<int32_t>(steps, out);
  }
}

}  // namespace tt::cpu
