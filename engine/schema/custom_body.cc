#include "engine/schema/custom_body.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/schema/custom_operator.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

using Kind = CustomExpression::Kind;

[[noreturn]] void refuse(const std::string& why) { fail(ErrorKind::kValue, why); }

// Arithmetic of numbers in bodies.
std::optional<Scalar> fold(std::string_view op, absl::Span<const Scalar> numbers) {
  const auto all = [&](auto predicate) { return std::all_of(numbers.begin(), numbers.end(), predicate); };
  if (!all([](const Scalar& s) { return s.is_real(); })) return std::nullopt;
  const bool integral = all([](const Scalar& s) { return is_integral(s.dtype()) && !s.is_beyond_int(); });
  const double x = numbers[0].to_double(), y = numbers.size() > 1 ? numbers[1].to_double() : 0;
  const int64_t i = numbers[0].to_int(), j = numbers.size() > 1 ? numbers[1].to_int() : 0;
  int64_t result = 0;
  if (numbers.size() == 1 && op == "neg")
    return integral && !__builtin_sub_overflow(int64_t{0}, i, &result) ? Scalar(result) : Scalar(-x);
  if (numbers.size() != 2) return std::nullopt;
  if (op == "add") return integral && !__builtin_add_overflow(i, j, &result) ? Scalar(result) : Scalar(x + y);
  if (op == "sub") return integral && !__builtin_sub_overflow(i, j, &result) ? Scalar(result) : Scalar(x - y);
  if (op == "mul") return integral && !__builtin_mul_overflow(i, j, &result) ? Scalar(result) : Scalar(x * y);
  if (op == "true_divide") return Scalar(x / y);
  return std::nullopt;
}

// Lowers a body to steps.
class BodyLowering {
 public:
  BodyLowering(absl::Span<const Param> params, Args args) : params_(params), args_(args) {}

  std::vector<BodyStep> lower(const CustomExpression& body) {
    const Source result = source(body);
    check(ErrorKind::kValue, result.from == Source::From::kStep,
          "a body has to call at least one operator of a Tensor");
    return std::move(steps_);
  }

 private:
  using Source = BodyStep::Source;

  static Source of(const Arg& value) { return {Source::From::kValue, 0, value}; }

  Source source(const CustomExpression& e) {
    switch (e.kind) {
      case Kind::kNumber: return of(Arg(e.number));
      case Kind::kNone: return of(Arg());
      case Kind::kString: return of(Arg(std::string_view(e.text)));
      case Kind::kName: {
        for (size_t i = 0; i < params_.size(); ++i) {
          if (params_[i].name != e.text) continue;
          if (params_[i].type == ParamType::kTensor) return {Source::From::kArgument, i, {}};
          return of(args_[i]);
        }
        refuse(absl::StrCat("a body names no parameter: ", e.text));
      }
      case Kind::kCall: return call(e);
      default: refuse("a body is made of calls of pointwise operators, parameters and numbers");
    }
  }

  Source call(const CustomExpression& e) {
    std::vector<Source> given;
    given.reserve(e.items.size());
    for (const CustomExpression& item : e.items) given.push_back(source(item));
    const auto is_number = [](const Source& s) { return s.from == Source::From::kValue && s.value.is_number(); };
    if (!given.empty() && e.keywords.empty() && std::all_of(given.begin(), given.end(), is_number)) {
      std::vector<Scalar> numbers;
      numbers.reserve(given.size());
      for (const Source& each : given) numbers.push_back(each.value.scalar());
      if (const std::optional<Scalar> value = fold(e.text, numbers)) return of(Arg(*value));
    }
    const Op* const op = find_op(std::string_view(e.text));
    if (op == nullptr || !op->is_pointwise || op->is_random || is_custom(op->id))
      refuse(absl::StrCat("a body calls '", e.text, "', which is no pointwise operator of the engine"));
    check(ErrorKind::kValue, given.size() <= op->params.size(), "a body passes ", given.size(), " arguments to ",
          e.text, ", which takes ", op->params.size());
    BodyStep step{op, std::move(given)};
    for (size_t i = step.sources.size(); i < op->params.size(); ++i) step.sources.push_back(missing(op->params[i], e));
    for (const auto& [name, value] : e.keywords) set(&step, name, source(value));
    for (size_t i = 0; i < step.sources.size(); ++i) {
      check(ErrorKind::kValue, step.sources[i].from != Source::From::kValue || !is_unset(step.sources[i].value),
            "a body calls ", e.text, " without its argument '", message_part(op->params[i].name), "'");
    }
    check(ErrorKind::kValue, steps_.size() < kMaxSteps, "a body has at most ", kMaxSteps, " operators");
    steps_.push_back(std::move(step));
    return {Source::From::kStep, steps_.size() - 1, {}};
  }

  // A mark of an argument without a default: a kSlot, which no value of a body is.
  static bool is_unset(const Arg& value) { return value.kind == Arg::Kind::kSlot; }
  static Source missing(const Param& param, const CustomExpression&) {
    if (param.has_default) return of(param.default_value);
    if (param.optional) return of(Arg());
    Arg unset;
    unset.kind = Arg::Kind::kSlot;
    return of(unset);
  }
  static void set(BodyStep* step, std::string_view name, const Source& value) {
    for (size_t i = 0; i < step->op->params.size(); ++i) {
      if (step->op->params[i].name == name) {
        step->sources[i] = value;
        return;
      }
    }
    refuse(absl::StrCat("a body calls ", message_part(step->op->name), " with the unknown argument '",
                        message_part(name), "'"));
  }

  static constexpr size_t kMaxSteps = 60;
  const absl::Span<const Param> params_;
  const Args args_;
  std::vector<BodyStep> steps_;
};

}  // namespace

std::vector<BodyStep> lower_body(const CustomExpression& body, absl::Span<const Param> params, Args args) {
  return BodyLowering(params, args).lower(body);
}

// The results of a body's steps, of which only the metadata is computed.
void infer_steps(absl::Span<const BodyStep> steps, Args given, Inference* out) {
  std::vector<TensorMeta> results(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    std::vector<Arg> args;
    for (const BodyStep::Source& source : steps[i].sources) {
      args.push_back(source.from == BodyStep::Source::From::kValue      ? source.value
                     : source.from == BodyStep::Source::From::kArgument ? given[source.index]
                                                                        : Arg(&results[source.index]));
    }
    steps[i].op->check_args(args);
    Inference inferred;
    infer(*steps[i].op, args, false, &inferred);
    results[i] = std::move(inferred.outputs[0]);
  }
  out->outputs.push_back(std::move(results.back()));
}

}  // namespace tt
