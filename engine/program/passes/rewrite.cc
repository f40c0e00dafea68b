#include "engine/program/passes/rewrite.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/program/passes/inferred_call.h"
#include "engine/program/passes/pattern.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/schema/op.h"

namespace tt {
namespace {

// An operator's arguments as owned values; a Program copies them.
struct Replacement {
  std::string_view op;
  std::vector<Arg> args;
  std::vector<int64_t> integers = {};  // of a list among the arguments
};

class Types {
 public:
  Types(const PatternMatch& match, const ProgramTypes& types) : match_(match), types_(types) {}

  Slot slot(const char* name) const { return match_.tensors.at(name); }
  const TensorMeta& of(const char* name) const { return types_.of(slot(name)); }
  double number(const char* name) const { return match_.numbers.at(name); }
  // The dimension of a list with one entry, not negative; nothing if it has more.
  std::optional<int64_t> dim(const char* list, const char* tensor) const {
    const std::vector<int64_t>& dims = match_.lists.at(list);
    if (dims.size() != 1) return std::nullopt;
    return dims[0] < 0 ? dims[0] + of(tensor).dim() : dims[0];
  }
  bool has_one(const char* list) const { return match_.lists.at(list).size() == 1; }
  bool is_last(const char* list, const char* tensor) const { return dim(list, tensor) == of(tensor).dim() - 1; }
  // Whether the tensor has one element per element of x's last dimension.
  bool is_row_of(const char* tensor, const TensorMeta& x) const {
    const TensorMeta& row = of(tensor);
    return row.dim() == 1 && x.dim() > 0 && row.sizes[0] == x.sizes.back() && row.dtype == x.dtype;
  }

 private:
  const PatternMatch& match_;
  const ProgramTypes& types_;
};

using Build = std::optional<Replacement> (*)(const Types& types);

struct Rule {
  Pattern pattern;
  Build build;
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

std::optional<Replacement> cross_entropy(const Types& types) {
  if (types.dim("D", "x") != std::min<int64_t>(types.of("x").dim() - 1, 1)) return std::nullopt;  // that of the classes
  return Replacement{"cross_entropy", {slot_arg(types.slot("x")), slot_arg(types.slot("t"))}};
}

// Of batches of matrices with equal batch dimensions, which the operator requires.
bool have_equal_batches(const Types& types) {
  const TensorMeta &q = types.of("q"), &k = types.of("k"), &v = types.of("v");
  const auto same_batch = [&](const TensorMeta& other) {
    return other.dim() == q.dim() && std::equal(q.sizes.begin(), q.sizes.end() - 2, other.sizes.begin());
  };
  return q.dim() >= 3 && same_batch(k) && same_batch(v);
}

bool swaps_last(const Types& types, const char* tensor) {
  const auto a = types.dim("A", tensor), b = types.dim("B", tensor);
  const int64_t last = types.of(tensor).dim() - 1;
  return a && b && std::min(*a, *b) == last - 1 && std::max(*a, *b) == last;
}

// Whether the scores are those of `q` with the rows of `k`, and the weights sum to 1 over these.
bool is_attention(const Types& types) {
  return have_equal_batches(types) && swaps_last(types, "k") && types.is_last("D", "q");
}

std::optional<Replacement> attention_of(const Types& types, double scale) {
  if (!is_attention(types)) return std::nullopt;
  return Replacement{
      "attention",
      {slot_arg(types.slot("q")), slot_arg(types.slot("k")), slot_arg(types.slot("v")), Arg(), Arg(false), Arg(scale)}};
}

std::optional<Replacement> attention(const Types& types) { return attention_of(types, types.number("$scale")); }
std::optional<Replacement> divided_attention(const Types& types) {
  return attention_of(types, 1 / types.number("$scale"));
}

std::optional<Replacement> masked_attention(const Types& types) {
  const TensorMeta& mask = types.of("mask");
  if (mask.requires_grad || mask.dim() < 2 || mask.dim() > types.of("q").dim() || mask.dtype != types.of("q").dtype)
    return std::nullopt;
  if (!is_attention(types)) return std::nullopt;
  return Replacement{"softmax_attention",
                     {slot_arg(types.slot("q")), slot_arg(types.slot("k")), slot_arg(types.slot("v")),
                      slot_arg(types.slot("mask")), Arg(types.number("$scale"))}};
}

// The operator's arguments with its list in the place of its int[] parameter.
std::vector<Arg> with_list(const Op& op, const Replacement& replacement) {
  std::vector<Arg> args = replacement.args;
  for (size_t i = 0; i < args.size() && !replacement.integers.empty(); ++i) {
    if (op.params[i].type == ParamType::kInts) args[i] = Arg(absl::Span<const int64_t>(replacement.integers));
  }
  return args;
}

using Rules = absl::flat_hash_map<uint16_t, std::vector<Rule>>;

// By the operator that computes the pattern's result.
const Rules& rules() {
  static const auto* const rules = [] {
    auto* made = new Rules;
    const auto add = [&](const std::string& text, Build build) {
      Pattern pattern(text);
      const uint16_t op = pattern.op();
      (*made)[op].push_back({std::move(pattern), build});
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
    add("nll_loss(log_softmax(x, D), t)", &cross_entropy);
    add("nll_loss(log(softmax(x, D)), t)", &cross_entropy);
    const std::string scores = "s = matmul(q, transpose(k, A, B)) ";
    add(scores + "matmul(softmax(mul(s, $scale), D), v)", &attention);
    add(scores + "matmul(softmax(div(s, $scale), D), v)", &divided_attention);
    add(scores + "matmul(softmax(add(mul(s, $scale), mask), D), v)", &masked_attention);
    return made;
  }();
  return *rules;
}

bool has_wide_floats(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

// Replaces instruction `index` if it computes the result of a rule's pattern.
bool rewrite_instruction(Program* program, size_t index, const UseDefs& uses, const ProgramTypes& types) {
  const Instruction& instruction = program->instructions()[index];
  const auto found = rules().find(instruction.op->id);
  if (found == rules().end() || instruction.results.size() != 1) return false;
  const TensorMeta& result = types.of(instruction.results[0]);
  if (!has_wide_floats(result.dtype)) return false;
  for (const Rule& rule : found->second) {
    PatternMatch match;
    if (!rule.pattern.match(*program, uses, static_cast<int>(index), &match)) continue;
    const bool same_flags = std::all_of(match.instructions.begin(), match.instructions.end(), [&](int inner) {
      return program->instructions()[static_cast<size_t>(inner)].flags == instruction.flags;
    });
    const std::optional<Replacement> replacement = same_flags ? rule.build(Types(match, types)) : std::nullopt;
    if (!replacement) continue;
    const Op& op = *find_op(replacement->op);
    const std::vector<Arg> args = with_list(op, *replacement);
    if (!has_result(result, op, args, instruction.flags, types)) continue;
    Instruction& replaced = program->mutable_instructions()[index];
    replaced.op = &op;
    replaced.args = program->copy_args(args);
    return true;
  }
  return false;
}

}  // namespace

size_t rewrite(Program* program, const ProgramTypes& types) {
  size_t count = 0;
  std::optional<UseDefs> uses(*program);
  for (size_t i = 0; i < program->instructions().size(); ++i) {
    while (rewrite_instruction(program, i, *uses, types)) {
      ++count;
      const size_t before = program->instructions().size();
      remove_unused(program);
      i -= before - program->instructions().size();  // what it has removed was before it
      uses.emplace(*program);
    }
  }
  return count;
}

}  // namespace tt
