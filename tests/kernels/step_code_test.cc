// Compiled steps: the bits of the operators one by one, whatever reads what, for any length and layout.
#include "kernels/cpu/compiled/step_code.h"

#include <bit>
#include <cstring>
#include <limits>

#include "engine/dispatch/dispatcher.h"
#include "engine/schema/op_ids.h"
#include "kernels/cpu/iteration/block.h"
#include "kernels/cpu/iteration/chain.h"
#include "tests/kernels/backend.h"

namespace tt::cpu {
namespace {

using namespace testing;  // NOLINT: tensors.h

// The instruction sets to compile for on this machine; none where block functions have other bits, because they were
// compiled without fused multiply-add.
std::vector<const char*> instruction_sets() {
  if (std::string_view(blocks().isa) == "baseline") return {};
  if (std::string_view(blocks().isa) == "avx2") return {"avx2"};
  return {"avx2", "avx512"};
}

template <typename C>
bool same(C a, C b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof(C)) == 0;  // NaNs may have other payloads
}

template <typename C>
std::vector<C> numbers() {
  const C inf = std::numeric_limits<C>::infinity(), least = std::numeric_limits<C>::denorm_min();
  std::vector<C> all{C(0),
                     C(-0.0),
                     C(1),
                     C(-1),
                     C(0.5),
                     C(2.5),
                     C(-2.5),
                     C(3),
                     C(-3),
                     inf,
                     -inf,
                     std::numeric_limits<C>::quiet_NaN(),
                     least,
                     -least,
                     std::numeric_limits<C>::max(),
                     std::numeric_limits<C>::min(),
                     C(1) / 3,
                     C(1e-3)};
  std::normal_distribution<C> normal;
  while (all.size() < 41) all.push_back(normal(random_bits()));
  return all;
}

template <typename C>
BlockFunction<C> function_of(const PointwiseRow& row) {
  if constexpr (std::is_same_v<C, float>)
    return row.f32;
  else
    return row.f64;
}

// Runs the body alone, compiled and as block function, for all combinations of two of the numbers, in any places.
template <typename C>
void expect_bits_of_block_function(const Body& body, const char* isa) {
  const std::vector<C> all = numbers<C>();
  const auto n = static_cast<int64_t>(all.size() * all.size() - 3);  // not a whole number of vectors
  std::vector<std::vector<C>> inputs(body.num_tensors, std::vector<C>(static_cast<size_t>(n)));
  for (int64_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      const size_t at = k == 0 ? i / all.size() : k == 1 ? i % all.size() : (i * 7 + k) % all.size();
      inputs[k][i] = all[at];
    }
  }
  ScalarArgs<C> given;
  for (int k = 0; k < 8; ++k) given.value[k] = C(0.25) * (k + 1);
  given.present = 0xff;

  StepSource source;
  source.is_double = std::is_same_v<C, double>;
  source.num_inputs = body.num_tensors;
  source.num_numbers = static_cast<uint8_t>(body.num_numbers + body.constants.size());
  SourceStep& step = source.steps.emplace_back();
  step.body = &body;
  step.is_stored = true;
  for (uint8_t k = 0; k < body.num_tensors; ++k) step.args[k] = {StepOperand::Kind::kInput, k};
  const auto code = compile_steps(source, isa);
  ASSERT_NE(code, nullptr) << isa;

  const C* in[kMaxStepInputs];
  const void* untyped[kMaxStepInputs];
  for (size_t k = 0; k < inputs.size(); ++k) untyped[k] = in[k] = inputs[k].data();
  std::vector<C> values(given.value, given.value + body.num_numbers), want(n), got(n);
  for (double constant : body.constants) values.push_back(static_cast<C>(constant));
  function_of<C>(row_of(body.op))(n, in, want.data(), given);
  void* const out[] = {got.data()};
  code->run(n, untyped, out, values.data());
  int wrong = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (same(got[i], want[i]) || ++wrong > 3) continue;
    ADD_FAILURE() << find_op(body.op)->name << " for " << isa << " of " << inputs[0][i] << ", "
                  << (inputs.size() > 1 ? inputs[1][i] : C(0)) << ", " << (inputs.size() > 2 ? inputs[2][i] : C(0))
                  << ": " << got[i] << ", expected " << want[i];
  }
}

TEST(StepCode, EveryBodyHasTheBitsOfItsBlockFunction) {
  if (instruction_sets().empty()) GTEST_SKIP() << "no machine code is made for the baseline instruction set";
  EXPECT_GT(compiled_bodies().size(), 40u);
  for (const Body& body : compiled_bodies()) {
    for (const char* isa : instruction_sets()) {
      expect_bits_of_block_function<float>(body, isa);
      expect_bits_of_block_function<double>(body, isa);
    }
  }
}

// A random chain: each step reads inputs, numbers and earlier results.
class RandomChain {
 public:
  RandomChain(DType dtype, Sizes sizes, size_t length, std::mt19937* bits)
      : bits_(*bits), dtype_(dtype), sizes_(sizes) {
    static constexpr uint16_t kOps[] = {op_id::kAdd,     op_id::kSub,       op_id::kMul,       op_id::kTrueDivide,
                                        op_id::kMaximum, op_id::kSqrt,      op_id::kRelu,      op_id::kAbs,
                                        op_id::kNeg,     op_id::kFloor,     op_id::kLeakyRelu, op_id::kWhere,
                                        op_id::kTanh,    op_id::kHardswish, op_id::kSquare,    op_id::kAddcmul,
                                        op_id::kExp,     op_id::kPow,       op_id::kThreshold};
    for (const Sizes& own : {sizes, sizes, Sizes{sizes[1]}, Sizes{sizes[0], 1}, Sizes{}})
      inputs_.push_back(filled(own, dtype));
    inputs_.push_back(transposed(filled({sizes[1], sizes[0]}, dtype), 0, 1));
    for (size_t s = 0; s < length; ++s) {
      const Op& op = *find_op(kOps[pick(std::size(kOps))]);
      std::vector<Arg>& args = args_.emplace_back();
      for (const Param& p : op.params) {
        if (p.type == ParamType::kTensor)
          args.push_back(operand(s, args.empty()));
        else
          args.push_back(p.default_value.is_none() ? Arg(pick(5) * 0.5) : p.default_value);
      }
      if (op.id == op_id::kPow) args[1] = Arg(static_cast<double>(pick(4)));
      ops_.push_back(&op);
    }
  }

  // By step, if `kept` contains it: its result.
  std::vector<Tensor> run(const std::vector<bool>& kept) const {
    std::vector<Tensor> results(ops_.size());
    std::vector<ChainStep> steps;
    for (size_t s = 0; s < ops_.size(); ++s) {
      steps.push_back({ops_[s], args_[s], dtype_});
      if (!kept[s]) continue;
      results[s] = empty(sizes_, dtype_, Device{});
      if (s + 1 < ops_.size()) steps.back().kept = &results[s];
    }
    run_chain(steps, results.back());
    return results;
  }

  // The results of all steps, each in a loop of its own.
  std::vector<Tensor> run_one_by_one() const {
    std::vector<Tensor> results;
    for (size_t s = 0; s < ops_.size(); ++s) {
      std::vector<Arg> args = args_[s];
      for (Arg& arg : args) {
        if (arg.kind == Arg::Kind::kSlot) arg = Arg(results[arg.slot].get());
      }
      results.push_back(empty(sizes_, dtype_, Device{}));
      const ChainStep step{ops_[s], args, dtype_};
      run_chain(absl::MakeConstSpan(&step, 1), results.back());
    }
    return results;
  }

  std::string text() const {
    std::string text;
    for (const Op* op : ops_) text += std::string(op->name) + " ";
    return text;
  }
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(bits_); }

 private:
  Arg operand(size_t step, bool is_first) {
    if (step > 0 && pick(4) != 0) {
      Arg arg;
      arg.kind = Arg::Kind::kSlot;
      arg.slot = pick(3) == 0 ? pick(step) : step - 1;
      return arg;
    }
    if (!is_first && pick(3) == 0) return Arg(static_cast<double>(pick(9)) / 4 - 1);
    return Arg(inputs_[pick(inputs_.size())].get());
  }

  std::mt19937& bits_;
  const DType dtype_;
  const Sizes sizes_;
  std::vector<Tensor> inputs_;
  std::vector<const Op*> ops_;
  std::vector<std::vector<Arg>> args_;
};

template <typename C>
void expect_same_bits(const Tensor& got, const Tensor& want, const std::string& what) {
  for (int64_t i = 0; i < want.numel(); ++i) {
    const C a = got.data_as<C>()[i], b = want.data_as<C>()[i];
    ASSERT_TRUE(same(a, b)) << what << " at " << i << ": " << a << ", expected " << b;
  }
}

TEST(StepCode, RandomChainsHaveTheBitsOfTheirSteps) {
  have_backend();
  std::mt19937 bits(31);
  int ran = 0;
  for (int round = 0; round < 240; ++round) {
    const DType dtype = round % 3 == 0 ? DType::kFloat64 : DType::kFloat32;
    const Sizes sizes = round % 2 == 0 ? Sizes{37, 61} : Sizes{4, 600};
    RandomChain chain(dtype, sizes, 2 + round % 19, &bits);
    const std::vector<Tensor> want = chain.run_one_by_one();
    std::vector<bool> kept(want.size());
    for (size_t s = 0; s < kept.size(); ++s) kept[s] = s + 1 == kept.size() || chain.pick(4) == 0;
    for (int run = 0; run < 4; ++run) {  // interpreted at first, then compiled
      std::vector<Tensor> got;
      try {
        got = chain.run(kept);
      } catch (const Error&) {  // too many results in use at once
        break;
      }
      ++ran;
      for (size_t s = 0; s < got.size(); ++s) {
        if (!got[s]) continue;
        const std::string what =
            "round " + std::to_string(round) + ", step " + std::to_string(s) + " of " + chain.text();
        dtype == DType::kFloat64 ? expect_same_bits<double>(got[s], want[s], what)
                                 : expect_same_bits<float>(got[s], want[s], what);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(ran, 900);
}

// Adds the inputs in turn to a running sum.
StepSource sums(size_t inputs, size_t steps) {
  StepSource source;
  source.num_inputs = static_cast<uint8_t>(inputs);
  source.num_numbers = 1;
  for (size_t s = 0; s < steps; ++s) {
    SourceStep& step = source.steps.emplace_back();
    step.body = body_of(op_id::kAdd);
    step.args[0] = {StepOperand::Kind::kInput, static_cast<uint8_t>(s % inputs)};
    step.args[1] = {s == 0 ? StepOperand::Kind::kInput : StepOperand::Kind::kResult,
                    static_cast<uint8_t>(s == 0 ? 0 : s - 1)};
  }
  source.steps.back().is_stored = true;
  return source;
}

TEST(StepCode, CompilesAtTheThirdUse) {
  if (instruction_sets().empty()) GTEST_SKIP() << "no machine code is made for the baseline instruction set";
  bool never = true;
  const StepSource source = sums(3, 7);
  EXPECT_EQ(find_code(source, blocks().isa, false, &never), nullptr);
  EXPECT_FALSE(never);
  EXPECT_EQ(find_code(source, blocks().isa, false, &never), nullptr);
  const auto code = find_code(source, blocks().isa, false, &never);
  EXPECT_NE(code, nullptr);
  EXPECT_EQ(find_code(source, blocks().isa, false, &never), code);
  EXPECT_NE(find_code(sums(3, 6), blocks().isa, true, &never), nullptr);
}

TEST(StepCode, TooManyValuesAreNotCompiled) {
  if (instruction_sets().empty()) GTEST_SKIP() << "no machine code is made for the baseline instruction set";
  StepSource source;  // all negated first, then all read
  source.num_inputs = 31;
  for (uint8_t s = 0; s < 31; ++s) {
    SourceStep& step = source.steps.emplace_back();
    step.body = body_of(op_id::kNeg);
    step.args[0] = {StepOperand::Kind::kInput, s};
  }
  for (uint8_t s = 0; s < 30; ++s) {
    SourceStep& step = source.steps.emplace_back();
    step.body = body_of(op_id::kMul);
    step.args[0] = {StepOperand::Kind::kResult, s};
    step.args[1] = {StepOperand::Kind::kResult, static_cast<uint8_t>(s == 0 ? 30 : 30 + s)};
  }
  source.steps.back().is_stored = true;
  bool never = false;
  EXPECT_EQ(find_code(source, blocks().isa, true, &never), nullptr);
  EXPECT_TRUE(never);
}

TEST(StepCode, IsForgottenWhenThereIsTooMuch) {
  if (instruction_sets().empty()) GTEST_SKIP() << "no machine code is made for the baseline instruction set";
  bool never = false;
  const auto held = find_code(sums(2, 5), blocks().isa, true, &never);
  ASSERT_NE(held, nullptr);
  for (size_t i = 0; i <= kMaxCodes; ++i) find_code(sums(1 + i % 200, 2 + i / 200), blocks().isa, false, &never);
  EXPECT_NE(find_code(sums(2, 5), blocks().isa, true, &never), held);
  const std::vector<float> a(20, 1), b(20, 2);
  std::vector<float> out(20);
  const void* in[] = {a.data(), b.data()};
  void* const to[] = {out.data()};
  const float one = 1;  // alpha
  held->run(20, in, to, &one);
  EXPECT_EQ(out, std::vector<float>(20, 1 + 1 + 2 + 1 + 2 + 1));
}

}  // namespace
}  // namespace tt::cpu
