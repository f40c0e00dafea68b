#include "engine/program/passes/rewrite.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/device/cancellation.h"
#include "engine/program/passes/inferred_call.h"
#include "engine/program/passes/live_uses.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/rewrite_rules.h"
#include "engine/schema/half.h"
#include "engine/schema/op.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

struct Rule {
  Pattern pattern;
  Build build;
  bool for_halves;  // also for results of 16 bits, whose intermediate results single calls round
  bool is_last;     // of AddRule
};

std::optional<Replacement> softmax(const Types& types) {
  const auto dim = types.dim("D", "x");
  if (!dim) return std::nullopt;
  return Replacement{"softmax", {slot_arg(types.slot("x")), Arg(*dim)}};
}

std::optional<Replacement> rms_norm(const Types& types) {
  if (!types.is_last("D", "x")) return std::nullopt;
  return Replacement{
      "rms_norm", {slot_arg(types.slot("x")), Arg(), Arg(), Arg(types.number("$eps"))}, {types.of("x").sizes.back()}};
}

// Of an RMS norm that is an operator already.
std::optional<Replacement> weighted_rms_norm(const Types& types) {
  if (!types.has_one("N") || !types.is_row_of("w", types.of("x"))) return std::nullopt;
  return Replacement{"rms_norm",
                     {slot_arg(types.slot("x")), Arg(), slot_arg(types.slot("w")), Arg(types.number("$eps"))},
                     {types.of("x").sizes.back()}};
}

std::optional<Replacement> layer_norm(const Types& types) {
  if (!types.is_last("D", "x")) return std::nullopt;
  return Replacement{"layer_norm",
                     {slot_arg(types.slot("x")), Arg(), Arg(), Arg(), Arg(types.number("$eps"))},
                     {types.of("x").sizes.back()}};
}

std::optional<Replacement> affine_layer_norm(const Types& types) {
  if (!types.has_one("N") || !types.is_row_of("w", types.of("x")) || !types.is_row_of("b", types.of("x")))
    return std::nullopt;
  return Replacement{"layer_norm",
                     {slot_arg(types.slot("x")), Arg(), slot_arg(types.slot("w")), slot_arg(types.slot("b")),
                      Arg(types.number("$eps"))},
                     {types.of("x").sizes.back()}};
}

std::optional<Replacement> gelu_tanh(const Types& types) {
  return Replacement{"gelu_tanh", {slot_arg(types.slot("x"))}};
}

std::optional<Replacement> gelu_erf(const Types& types) { return Replacement{"gelu_erf", {slot_arg(types.slot("x"))}}; }

std::optional<Replacement> silu(const Types& types) { return Replacement{"silu", {slot_arg(types.slot("x"))}}; }

// Of batches of matrices with equal batch dimensions, which the operator requires. `key` may be transposed.
bool have_equal_batches(const Types& types, const char* key) {
  const TensorMeta &q = types.of("q"), &k = types.of(key), &v = types.of("v");
  const auto same_batch = [&](const TensorMeta& other) {
    return other.dim() == q.dim() && std::equal(q.sizes.begin(), q.sizes.end() - 2, other.sizes.begin());
  };
  return q.dim() >= 3 && same_batch(k) && same_batch(v);
}

// Whether the lists A and B are the last two dimensions, or P permutes nothing but these.
bool swaps_last(const Types& types, const char* tensor) {
  const int64_t last = types.of(tensor).dim() - 1;
  if (types.has_list("P")) {
    const std::vector<int64_t>& dims = types.list("P");
    if (static_cast<int64_t>(dims.size()) != last + 1 || last < 1) return false;
    for (int64_t d = 0; d <= last; ++d) {
      const int64_t from = dims[static_cast<size_t>(d)], expected = d == last ? last - 1 : d == last - 1 ? last : d;
      if ((from < 0 ? from + last + 1 : from) != expected) return false;
    }
    return true;
  }
  const auto a = types.dim("A", tensor), b = types.dim("B", tensor);
  return a && b && std::min(*a, *b) == last - 1 && std::max(*a, *b) == last;
}

bool is_on_cpu(const Types& types) { return types.of("q").device.type == DeviceType::kCPU; }

// A mask of scores that no gradient is recorded of, and that broadcasts to them.
bool is_mask(const Types& types, const char* name) {
  const TensorMeta& mask = types.of(name);
  return !mask.requires_grad && mask.dim() >= 2 && mask.dim() <= types.of("q").dim();
}

// The largest finite number of a floating dtype.
double largest(DType dtype) {
  if (dtype == DType::kFloat16) return 65504;
  if (dtype == DType::kBFloat16) return 0x1.fep127;
  return dtype == DType::kFloat64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

// A number as an element of a dtype, which single calls write.
double rounded(double number, DType dtype) {
  const auto narrow = static_cast<float>(number);
  if (dtype == DType::kFloat16) return static_cast<double>(static_cast<float>(Half(narrow)));
  if (dtype == DType::kBFloat16) return static_cast<double>(static_cast<float>(BFloat16(narrow)));
  return number;
}

// A bool mask of scores that -inf or a finite number replaces. The kernels of other devices than the CPU add masks.
bool is_selection(const Types& types, const char* name) {
  const double fill = types.number("$fill");
  return is_mask(types, name) && types.of(name).dtype == DType::kBool && is_on_cpu(types) &&
         (fill == -HUGE_VAL || std::abs(fill) <= largest(types.of("q").dtype));
}

// A mask that is added. Single calls round sums of 16 bits: scores and large numbers to equal ones. Only the CPU's
// kernels do.
bool is_added(const Types& types) {
  const DType dtype = types.of("q").dtype;
  return is_mask(types, "mask") && types.of("mask").dtype == dtype && (item_size(dtype) > 2 || is_on_cpu(types));
}

// Whether the weights are computed in a dtype that has all values of that of the queries, and float32 at least.
bool has_wide_weights(const Types& types) {
  if (!types.has_argument("@wide")) return true;
  const Arg& wide = types.argument("@wide");
  if (wide.kind != Arg::Kind::kInt) return false;
  const auto dtype = static_cast<DType>(wide.integer);
  return dtype == DType::kFloat64 || (dtype == DType::kFloat32 && types.of("q").dtype != DType::kFloat64);
}

// The weights of the values sum to 1 over the rows of the keys. `kt` is what the pattern calls keys that are transposed
// already.
std::optional<Replacement> attention(const Types& types) {
  const bool is_transposed = types.has("kt");
  const char* const key = is_transposed ? "kt" : "k";
  if (!have_equal_batches(types, key) || !types.is_last("D", "q")) return std::nullopt;
  const DType dtype = types.of("q").dtype;
  if (types.of(key).dtype != dtype || types.of("v").dtype != dtype || !has_wide_weights(types)) return std::nullopt;
  if (!is_transposed && !swaps_last(types, "k")) return std::nullopt;
  const double scale = types.factor("$q") / types.factor("$q_divisor") * types.factor("$k") * types.factor("$scale") /
                       types.factor("$divisor");
  if (!std::isfinite(scale)) return std::nullopt;
  Replacement made{"softmax_attention",
                   {slot_arg(types.slot("q")), slot_arg(types.slot(key)), slot_arg(types.slot("v"))}};
  if (is_transposed) {
    made.args[1] = prepared(made.before.size());
    made.before.push_back({"transpose", {slot_arg(types.slot("kt")), Arg(int64_t{-2}), Arg(int64_t{-1})}});
  }
  if (types.has("mask")) {
    if (!is_added(types)) return std::nullopt;
    made.args.push_back(slot_arg(types.slot("mask")));
  } else if (types.has("excluded")) {
    if (!is_selection(types, "excluded")) return std::nullopt;
    made.args.push_back(slot_arg(types.slot("excluded")));
  } else if (types.has("allowed")) {
    if (!is_selection(types, "allowed")) return std::nullopt;
    made.args.push_back(prepared(made.before.size()));
    made.before.push_back({"logical_not", {slot_arg(types.slot("allowed"))}});
  } else {
    made.args.push_back(Arg());
  }
  made.args.push_back(Arg(scale));
  if (types.has_number("$fill") && types.number("$fill") != -HUGE_VAL) {
    made.args.push_back(Arg(rounded(types.number("$fill"), dtype)));
  }
  return made;
}

// The operator's arguments with lists in the places of its int[] and Tensor[] parameters.
std::vector<Arg> with_lists(const Op& op, std::vector<Arg> args, absl::Span<const int64_t> integers,
                            absl::Span<const Slot> tensors = {}) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (op.params[i].type == ParamType::kInts && !integers.empty()) args[i] = Arg(integers);
    if (op.params[i].type == ParamType::kTensors && !tensors.empty()) {
      args[i].kind = Arg::Kind::kSlots;
      args[i].size = static_cast<uint32_t>(tensors.size());
      args[i].slots = tensors.data();
    }
  }
  return args;
}

using Rules = absl::flat_hash_map<uint16_t, std::vector<Rule>>;

// By the operator that computes the pattern's result.
const Rules& rules() {
  static const auto* const rules = [] {
    auto* made = new Rules;
    const auto add_rule = [&](const std::string& text, Build build, bool for_halves, bool is_last) {
      Pattern pattern(text);
      const uint16_t op = pattern.op();
      (*made)[op].push_back({std::move(pattern), build, for_halves, is_last});
    };
    const auto add = [&](const std::string& text, Build build, bool for_halves = false) {
      add_rule(text, build, for_halves, false);
    };
    for (const char* max : {"amax(x, D, True)", "max_dim(x, D, True)"}) {
      add(absl::StrCat("e = exp(sub(x, ", max, ")) div(e, sum(e, D, True))"), &softmax);
    }
    // Before RMS norms, whose pattern a layer norm's second part is, too.
    for (const char* variance : {"mean(square(c), D, True)", "mean(pow(c, 2), D, True)", "mean(mul(c, c), D, True)",
                                 "var(x, D, 0, True)", "var_dim(x, D, False, True)"}) {
      const std::string parts = absl::StrCat("c = sub(x, mean(x, D, True)) v = add(", variance, ", $eps) ");
      add(parts + "mul(c, rsqrt(v))", &layer_norm);
      add(parts + "div(c, sqrt(v))", &layer_norm);
    }
    add("add(mul(layer_norm(x, N, None, None, $eps), w), b)", &affine_layer_norm);
    for (const char* square : {"mul(x, x)", "square(x)", "pow(x, 2)"}) {
      const std::string mean = absl::StrCat("m = add(mean(", square, ", D, True), $eps) ");
      add(mean + "mul(x, rsqrt(m))", &rms_norm);
      add(mean + "div(x, sqrt(m))", &rms_norm);
    }
    add("mul(rms_norm(x, N, None, $eps), w)", &weighted_rms_norm);
    for (const char* cube : {"pow(x, 3)", "mul(mul(x, x), x)"}) {
      const std::string inner = absl::StrCat("t = tanh(mul(add(x, mul(", cube, ", 0.044715)), 0.7978845608)) ");
      add(inner + "mul(mul(x, 0.5), add(t, 1))", &gelu_tanh);
      add(inner + "mul(mul(x, add(t, 1)), 0.5)", &gelu_tanh);
    }
    add("mul(mul(x, 0.5), add(erf(div(x, 1.41421356)), 1))", &gelu_erf);
    add("mul(mul(x, 0.5), add(erf(mul(x, 0.70710678)), 1))", &gelu_erf);
    add("mul(x, sigmoid(x))", &silu);
    add_loss_rules([&](const std::string& text, Build build, bool is_last) { add_rule(text, build, false, is_last); });
    // Without the factors of queries and keys if something else reads the products, and with other permutations as they
    // are.
    for (const char* factors :
         {"q_ = mul(q, $q) | div(q, $q_divisor) | q "
          "k_ = mul(transpose(k, A, B), $k) | transpose(mul(k, $k), A, B) | transpose(k, A, B) | permute(k, P) | kt ",
          "q_ = mul(q, $q) | div(q, $q_divisor) | q k_ = kt ", "q_ = q k_ = transpose(k, A, B) | permute(k, P) | kt ",
          "q_ = q k_ = kt "}) {
      const std::string weights =
          absl::StrCat(factors,
                       "s = matmul(q_, k_) | bmm(q_, k_) x = mul(s, $scale) | div(s, $divisor) | s "
                       "m = masked_fill(x, excluded, $fill) | where(excluded, $fill, x) | where(allowed, x, $fill) | "
                       "add(x, mask) | x ",
                       "w = softmax(m, D) | to_dtype(softmax(m, D, @wide), @narrow) | "
                       "to_dtype(softmax(to_dtype(m, @wide), D), @narrow) ");
      add(weights + "matmul(w, v)", &attention, /*for_halves=*/true);
      add(weights + "bmm(w, v)", &attention, /*for_halves=*/true);
    }
    return made;
  }();
  return *rules;
}

bool has_wide_floats(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

// softmax(x, dim, dtype=float32) of a float32 tensor is softmax(x, dim).
void remove_equal_dtypes(Program* program, const ProgramTypes& types) {
  constexpr size_t kDType = 2;
  for (Instruction& call : program->mutable_instructions()) {
    if ((call.op->id != op_id::kSoftmax && call.op->id != op_id::kLogSoftmax) || call.args.size() <= kDType) continue;
    const Arg &input = call.args[0], &dtype = call.args[kDType];
    if (input.kind == Arg::Kind::kSlot && dtype.kind == Arg::Kind::kInt &&
        dtype.integer == static_cast<int64_t>(types.of(input.slot).dtype)) {
      call.args = call.args.first(kDType);
    }
  }
}

// A walk over the Program. Calls that a replacement has made unused stay until the end, so that indices stay valid.
class Rewriter {
 public:
  Rewriter(Program* program, const ProgramTypes& types)
      : program_(program), types_(types), uses_(*program), last_(last_name(*program)) {}

  // Returns the number of operators written. Throws Cancelled.
  size_t run() {
    constexpr size_t kBetweenChecks = 1024;
    size_t count = 0;
    const size_t instructions = program_->instructions().size();
    for (size_t i = 0; i < 2 * instructions; ++i) {
      if (i % kBetweenChecks == 0) check_cancelled();
      const bool is_last = i >= instructions;
      while (rewrite_instruction(is_last ? 2 * instructions - 1 - i : i, is_last)) ++count;
    }
    if (!prepared_.empty()) insert_prepared();
    if (count > 0) remove_unused(program_);
    return count;
  }

 private:
  // Replaces instruction `index` if it computes the result of a pattern of the last or the other rules. Returns whether
  // a rule applies.
  bool rewrite_instruction(size_t index, bool is_last) {
    const Instruction instruction = program_->instructions()[index];
    const auto found = rules().find(instruction.op->id);
    if (found == rules().end() || instruction.results.size() != 1) return false;
    if (is_last && !uses_.is_read(instruction.results[0])) return false;  // a part of a rewritten pattern
    const TensorMeta result = types_.of(instruction.results[0]);
    if (!is_floating(result.dtype)) return false;
    for (const Rule& rule : found->second) {
      if (rule.is_last != is_last || (!rule.for_halves && !has_wide_floats(result.dtype))) continue;
      PatternMatch match;
      if (!rule.pattern.match(*program_, uses_, static_cast<int>(index), &match)) continue;
      const bool same_flags = std::all_of(match.instructions.begin(), match.instructions.end(), [&](int inner) {
        return has_equal_flags(program_->instructions()[static_cast<size_t>(inner)], instruction);
      });
      const std::optional<Replacement> replacement = same_flags ? rule.build(Types(match, types_)) : std::nullopt;
      if (!replacement) continue;
      const Op& op = *find_op(replacement->op);
      const auto site = site_of(match, instruction);
      const auto before = prepare(replacement->before, instruction, site);
      if (!before) continue;
      const Args args = named(with_lists(op, replacement->args, replacement->integers), *before);
      if (!has_result(result, op, args, instruction.flags, types_)) continue;
      replace(index, op, args, site, *before, std::move(match.instructions));
      return true;
    }
    return false;
  }

  // The line of the call of a match that may fail because of values, by default that of its result.
  uint32_t site_of(const PatternMatch& match, const Instruction& result) const {
    for (int index : match.instructions) {
      const Instruction& call = program_->instructions()[static_cast<size_t>(index)];
      switch (call.op->id) {
        case op_id::kIndex:
        case op_id::kGather:
        case op_id::kNllLoss:
        case op_id::kCrossEntropy:
        case op_id::kOneHot:
        case op_id::kScatterValue: return call.site;
        default: break;
      }
    }
    return result.site;
  }

  // Whether two calls have the same modes; the grad mode of one whose arguments require no gradient has no effect.
  bool has_equal_flags(const Instruction& inner, const Instruction& result) const {
    const int differing = inner.flags ^ result.flags;
    if ((differing & ~Instruction::kGrad) != 0) return false;
    if (differing == 0) return true;
    for (size_t i = 0; i < inner.args.size(); ++i) {
      if (!inner.op->params[i].differentiable) continue;
      for (Slot slot : names_in(inner.args[i])) {
        if (slot != 0 && types_.of(slot).requires_grad) return false;
      }
    }
    return true;
  }

  // A copy of the arguments with the names of prepared calls in the place of prepared().
  Args named(const std::vector<Arg>& args, const std::vector<Instruction>& calls) {
    const auto name_of = [&](Slot slot) {
      const Slot i = prepared_slot(0) - slot;
      return i < calls.size() ? calls[i].results[0] : slot;
    };
    return program_->copy_args(renamed_args(args, name_of, &program_->memory()));
  }

  // The calls of `before`, with the names after last_, whose types are added; nothing if there would be too many names.
  std::optional<std::vector<Instruction>> prepare(const std::vector<Preparation>& before, const Instruction& user,
                                                  uint32_t site) {
    std::vector<Instruction> made;
    Slot name = last_;
    for (const Preparation& call : before) {
      if (++name > Program::kMaxNames) return std::nullopt;
      const Op& op = *find_op(call.op);
      const Args args = named(with_lists(op, call.args, call.integers, call.tensors), made);
      Instruction& instruction = made.emplace_back(user);
      instruction.op = &op;
      instruction.args = args;
      instruction.results = program_->memory().copy(absl::MakeConstSpan(&name, 1));
      instruction.release = {};
      instruction.count = 0;
      instruction.site = site;
      types_.add(instruction, /*grad_enabled=*/true);
    }
    return made;
  }

  // Instruction `index` becomes `op`, after the calls `before`. `inner` are the other ones of the match.
  void replace(size_t index, const Op& op, Args args, uint32_t site, const std::vector<Instruction>& before,
               std::vector<int> inner) {
    Instruction& replaced = program_->mutable_instructions()[index];
    uses_.remove_reads(replaced);
    replaced.op = &op;
    replaced.args = args;
    replaced.site = site;
    uses_.add_reads(replaced);
    for (const Instruction& call : before) {
      uses_.add_reads(call);
      prepared_.emplace_back(index, call);
    }
    last_ += before.size();
    const auto remove_if_unused = [&](int each) {
      const Instruction& call = program_->instructions()[static_cast<size_t>(each)];
      if (std::any_of(call.results.begin(), call.results.end(), [&](Slot slot) { return uses_.is_read(slot); }))
        return false;
      uses_.remove_reads(call);
      return true;
    };
    while (std::erase_if(inner, remove_if_unused) > 0) {
    }
  }

  void insert_prepared() {
    std::stable_sort(prepared_.begin(), prepared_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Instruction> all;
    const std::vector<Instruction>& instructions = program_->instructions();
    all.reserve(instructions.size() + prepared_.size());
    auto next = prepared_.begin();
    for (size_t i = 0; i < instructions.size(); ++i) {
      for (; next != prepared_.end() && next->first == i; ++next) all.push_back(next->second);
      all.push_back(instructions[i]);
    }
    program_->mutable_instructions() = std::move(all);
  }

  Program* const program_;
  ProgramTypes types_;
  LiveUses uses_;  // without the unused calls
  Slot last_;      // the largest name
  // Calls and the instructions before which they run. No pattern has them as parts.
  std::vector<std::pair<size_t, Instruction>> prepared_;
};

}  // namespace

size_t rewrite(Program* program, const ProgramTypes& types) {
  remove_equal_dtypes(program, types);
  return Rewriter(program, types).run();
}

}  // namespace tt
