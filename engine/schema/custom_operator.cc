#include "engine/schema/custom_operator.h"

#include <algorithm>
#include <charconv>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/mutex.h"
#include "engine/schema/custom_query.h"
#include "engine/schema/custom_rules.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

using Kind = CustomExpression::Kind;

constexpr size_t kMaxSchema = 4096, kMaxParams = 32, kMaxResults = 16, kMaxReplies = 4096;

[[noreturn]] void refuse(const std::string& why) { fail(ErrorKind::kValue, why); }

bool is_identifier(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || text.size() > 64 || !is_letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

absl::string_view stripped(std::string_view text) {
  return absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size()));
}
std::string_view plain(absl::string_view text) { return {text.data(), text.size()}; }

bool is_tensor(const Param& param) { return param.type == ParamType::kTensor || param.type == ParamType::kTensors; }

}  // namespace

// ---- Replies of the engine.

struct CustomOperator::Replies {
  mutable Mutex mutex;
  absl::flat_hash_map<std::string, std::vector<TensorMeta>> by_query ABSL_GUARDED_BY(mutex);

  static std::string key(const Op& op, Args args) {
    const std::vector<int64_t> query = encode_query(op, args);
    return {reinterpret_cast<const char*>(query.data()), query.size() * sizeof(int64_t)};
  }
};

namespace {
thread_local constinit const CustomOperator::Questions* questions = nullptr;
}  // namespace

CustomOperator::Questions::Questions(Answer answer) : answer_(std::move(answer)), before_(questions) {
  questions = this;
}
CustomOperator::Questions::~Questions() { questions = before_; }

void CustomOperator::infer_by_reply(Args args, Inference* out) const {
  const std::string key = Replies::key(op_, args);
  {
    MutexLock lock(replies_->mutex);
    if (const auto found = replies_->by_query.find(key); found != replies_->by_query.end()) {
      out->outputs.assign(found->second.begin(), found->second.end());
      return;
    }
  }
  check(ErrorKind::kNotImplemented, questions != nullptr,
        "the results' sizes are determined by a library of the engine, which cannot be asked here");
  std::vector<TensorMeta> results = questions->answer_(op_, args);
  check(ErrorKind::kValue, results.size() == static_cast<size_t>(op_.num_outputs), "expected ",
        static_cast<int>(op_.num_outputs), " results from the engine, got ", results.size());
  out->outputs.assign(results.begin(), results.end());
  MutexLock lock(replies_->mutex);
  if (replies_->by_query.size() >= kMaxReplies) replies_->by_query.clear();
  replies_->by_query[key] = std::move(results);
}

// ---- Construction.

CustomOperator::CustomOperator(CustomDeclaration declaration)
    : declaration_(std::move(declaration)), replies_(std::make_shared<Replies>()) {
  try {
    parse_schema();
    if (!declaration_.body.empty()) {
      parse_body();
    } else {
      parse_rules();
      parse_gradient();
    }
  } catch (Error& error) {
    error.set_op(op_.name.empty() ? declaration_.schema.substr(0, 100) : std::string(op_.name));
    throw;
  }
  op_.params = params_;
  op_.saved = saved_;
  op_.out = OutRule::kCast;
  const bool has_effect = op_.num_outputs != 0 ||
                          std::any_of(params_.begin(), params_.end(), [](const Param& param) { return param.written; });
  op_.session = has_effect ? SessionUse::kNone : SessionUse::kState;
  op_.infer = [](Args, Inference*) {
    fail(ErrorKind::kRuntime, "the rule of a custom operator was called without it");
  };
}

size_t CustomOperator::find_param(std::string_view name) const {
  size_t i = 0;
  while (i < params_.size() && params_[i].name != name) ++i;
  return i;
}

Arg CustomOperator::parse_default(std::string_view text, const Param& param) {
  const CustomExpression value = parse_custom_expression(text);
  const auto wrong = [&] {
    refuse(absl::StrCat("the default ", message_part(text), " does not fit the parameter '", message_part(param.name),
                        "'"));
  };
  switch (value.kind) {
    case Kind::kNone: return {};
    case Kind::kNumber: return param.type == ParamType::kFloat ? Arg(value.number.to_double()) : Arg(value.number);
    case Kind::kString: return Arg(std::string_view(texts_.emplace_back(value.text)));
    case Kind::kName:
      if (const auto dtype = parse_dtype(value.text); dtype && param.type == ParamType::kDType) return Arg(*dtype);
      wrong();
      break;
    case Kind::kList: {
      if (param.type == ParamType::kTensors && value.items.empty()) return Arg(absl::Span<const TensorMeta* const>());
      for (const CustomExpression& item : value.items) {
        if (item.kind != Kind::kNumber) wrong();
      }
      if (param.type == ParamType::kInts) {
        auto& list = integers_.emplace_back(std::make_unique<int64_t[]>(value.items.size()));
        for (size_t i = 0; i < value.items.size(); ++i) list[i] = value.items[i].number.to_int();
        return Arg(absl::Span<const int64_t>(list.get(), value.items.size()));
      }
      auto& list = reals_.emplace_back(std::make_unique<double[]>(value.items.size()));
      for (size_t i = 0; i < value.items.size(); ++i) list[i] = value.items[i].number.to_double();
      return Arg(absl::Span<const double>(list.get(), value.items.size()));
    }
    default: wrong();
  }
  return {};
}

void CustomOperator::parse_schema() {
  const std::string_view schema = declaration_.schema;
  check(ErrorKind::kValue, schema.size() <= kMaxSchema, "a schema has at most ", kMaxSchema, " characters");
  check(ErrorKind::kValue,
        std::all_of(schema.begin(), schema.end(), [](unsigned char c) { return (c >= 32 && c < 127) || c == '\n'; }),
        "a schema is ASCII text");
  const size_t open = schema.find('('), arrow = schema.rfind("->");
  check(ErrorKind::kValue, open != std::string_view::npos && arrow != std::string_view::npos && arrow > open,
        "expected a schema such as 'mylib::scale(Tensor a, float scale=1.0) -> Tensor'");
  const std::string_view name = plain(stripped(schema.substr(0, open)));
  const std::string_view before = plain(stripped(schema.substr(open, arrow - open)));
  check(ErrorKind::kValue, before.size() >= 2 && before.back() == ')', "expected ')' before '->' in the schema");
  const size_t colons = name.find("::");
  check(ErrorKind::kValue,
        colons != std::string_view::npos && is_identifier(name.substr(0, colons)) &&
            is_identifier(name.substr(colons + 2)),
        "expected a name such as mylib::scale, got '", message_part(name), "'");
  for (const char* reserved : {"aten", "prim", "prims", "teletensor", "torch", "profiler", "higher_order", "quantized",
                               "quantized_decomposed", "c10d", "_c10d_functional"}) {
    check(ErrorKind::kValue, name.substr(0, colons) != reserved, "the namespace ", reserved, " is reserved");
  }
  op_.name = texts_.emplace_back(name);
  params_.reserve(kMaxParams);
  bool keyword_only = false;
  for (std::string_view part : split_formulas(before.substr(1, before.size() - 2), ',')) {
    if (part == "*") {
      check(ErrorKind::kValue, !keyword_only, "expected one '*' in the schema");
      keyword_only = true;
      continue;
    }
    check(ErrorKind::kValue, params_.size() < kMaxParams, "a schema has at most ", kMaxParams, " parameters");
    Param param{};
    const size_t equals = part.find('=');
    const std::string_view typed = plain(stripped(part.substr(0, equals)));
    const size_t space = typed.find_last_of(" \n");
    check(ErrorKind::kValue, space != std::string_view::npos && is_identifier(typed.substr(space + 1)),
          "expected 'type name' in the schema, got '", message_part(part), "'");
    param.name = texts_.emplace_back(typed.substr(space + 1));
    check(ErrorKind::kValue, find_param(param.name) == params_.size(), "the parameter '", message_part(param.name),
          "' is declared twice");
    std::string_view type = plain(stripped(typed.substr(0, space)));
    check(ErrorKind::kValue, type.find('!') == std::string_view::npos,
          "operators of libraries do not change their arguments, got '", message_part(part), "'");
    if (type.ends_with('?')) {
      param.optional = true;
      type.remove_suffix(1);
    }
    constexpr std::pair<std::string_view, ParamType> kTypes[] = {
        {"Tensor", ParamType::kTensor},  {"Tensor[]", ParamType::kTensors}, {"Scalar", ParamType::kScalar},
        {"int", ParamType::kInt},        {"SymInt", ParamType::kInt},       {"float", ParamType::kFloat},
        {"bool", ParamType::kBool},      {"int[]", ParamType::kInts},       {"SymInt[]", ParamType::kInts},
        {"float[]", ParamType::kFloats}, {"str", ParamType::kString},       {"ScalarType", ParamType::kDType}};
    const auto* const found =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& t) { return t.first == type; });
    check(ErrorKind::kValue, found != std::end(kTypes), "the type '", message_part(type),
          "' is not supported; see docs/cpp-operators.md");
    param.type = found->second;
    check(ErrorKind::kValue, param.type != ParamType::kTensors || !param.optional, "expected Tensor[], got Tensor[]?");
    param.keyword_only = keyword_only;
    if (equals != std::string_view::npos) {
      param.has_default = true;
      param.default_value = parse_default(plain(stripped(part.substr(equals + 1))), param);
      check(ErrorKind::kValue, param.accepts(param.default_value), "the default of '", message_part(param.name),
            "' has another type");
    } else if (!params_.empty() && !keyword_only) {
      check(ErrorKind::kValue, !params_.back().has_default, "the parameter '", message_part(param.name),
            "' without a default follows one with a default");
    }
    params_.push_back(param);
  }
  std::string_view results = plain(stripped(schema.substr(arrow + 2)));
  if (results.starts_with('(')) {
    check(ErrorKind::kValue, results.ends_with(')'), "expected ')' at the end of the schema");
    results = results.substr(1, results.size() - 2);
  }
  for (std::string_view part : split_formulas(results, ',')) {
    const size_t space = part.find(' ');
    check(ErrorKind::kValue, part.substr(0, space) == "Tensor", "expected results of type Tensor, got '",
          message_part(part), "'");
    const std::string_view result =
        space == std::string_view::npos ? std::string_view() : plain(stripped(part.substr(space)));
    check(ErrorKind::kValue, result.empty() || is_identifier(result), "expected a result's name, got '",
          message_part(result), "'");
    result_names_.emplace_back(result);
  }
  check(ErrorKind::kValue, !result_names_.empty() && result_names_.size() <= kMaxResults, "expected 1 to ", kMaxResults,
        " results, got ", result_names_.size());
  op_.num_outputs = static_cast<int8_t>(result_names_.size());
}

void CustomOperator::parse_rules() {
  if (declaration_.has_rule) {
    check(ErrorKind::kValue, declaration_.shape.empty() && declaration_.dtype.empty(),
          "expected either a rule function or shape and dtype, got both");
    return;
  }
  check(ErrorKind::kValue, !declaration_.shape.empty(), "expected shape, a rule function or a body");
  for (std::string_view part : split_formulas(declaration_.shape, ';'))
    shapes_.push_back(parse_custom_expression(part));
  for (std::string_view part : split_formulas(declaration_.dtype, ';'))
    dtypes_.push_back(parse_custom_expression(part));
  const auto results = static_cast<size_t>(op_.num_outputs);
  check(ErrorKind::kValue, shapes_.size() == results, "expected ", results, " shapes, one per result, got ",
        shapes_.size());
  check(ErrorKind::kValue, dtypes_.empty() || dtypes_.size() == results, "expected ", results,
        " dtypes, one per result, got ", dtypes_.size());
  for (const std::vector<CustomExpression>* list : {&shapes_, &dtypes_}) {
    for (const CustomExpression& rule : *list) {
      visit_expression(rule, [&](const CustomExpression& e) {
        if (e.kind != Kind::kName || find_param(e.text) < params_.size()) return;
        check(ErrorKind::kValue, list == &dtypes_ && parse_dtype(e.text).has_value(),
              "a rule names neither a parameter nor a dtype: ", e.text);
      });
    }
  }
}

void CustomOperator::parse_body() {
  check(ErrorKind::kValue,
        !declaration_.has_rule && declaration_.shape.empty() && declaration_.dtype.empty() &&
            declaration_.gradient.empty(),
        "an operator with a body has no rule, shape, dtype and gradient: they are those of the body");
  check(ErrorKind::kValue, op_.num_outputs == 1, "an operator with a body has one result");
  for (Param& param : params_) {
    check(ErrorKind::kValue, !param.optional && param.type != ParamType::kTensors,
          "an operator with a body has no optional parameters and no lists");
    param.differentiable = param.type == ParamType::kTensor;
  }
  body_ = parse_custom_expression(declaration_.body);
  // Numbers in place of the arguments: the steps depend on no values.
  std::vector<Arg> args;
  args.reserve(params_.size());
  for (const Param& param : params_) {
    args.push_back(param.has_default                  ? param.default_value
                   : param.type == ParamType::kFloat  ? Arg(1.5)
                   : param.type == ParamType::kString ? Arg(std::string_view("none"))
                                                      : Arg(1));
  }
  lower_body(*body_, params_, args);
  op_.is_composite = true;
  op_.differentiable = true;
}

void CustomOperator::parse_gradient() {
  const auto result_of = [&](std::string_view name) -> int {
    if (find_param(name) < params_.size() || !name.starts_with("result")) return -1;
    const std::string_view digits = name.substr(6);
    int index = 0;
    if (digits.size() > 2) return -1;
    if (!digits.empty() &&
        std::from_chars(digits.data(), digits.data() + digits.size(), index).ptr != digits.data() + digits.size())
      return -1;
    return index < op_.num_outputs ? index : -1;
  };
  uint32_t all = 0, without = 0;
  if (declaration_.gradient.empty() || declaration_.gradient == "none") {
    for (Param& param : params_) param.differentiable = is_tensor(param) && declaration_.gradient.empty();
    op_.differentiable = declaration_.gradient.empty();
    return;
  }
  for (std::string_view part : split_formulas(declaration_.gradient, ';')) {
    const size_t colon = part.find(':');
    check(ErrorKind::kValue, colon != std::string_view::npos, "expected 'parameter: formula', got '",
          message_part(part), "'");
    CustomFormula formula;
    for (std::string_view name : split_formulas(part.substr(0, colon), ',')) {
      const size_t param = find_param(name);
      check(ErrorKind::kValue, param < params_.size() && params_[param].type == ParamType::kTensor,
            "a gradient is given for '", message_part(name), "', which is no parameter of type Tensor");
      check(ErrorKind::kValue, ((all | without) >> param & 1) == 0, "two gradients are given for '", message_part(name),
            "'");
      formula.targets.push_back(param);
      formula.params |= uint32_t{1} << param;
      all |= uint32_t{1} << param;
    }
    check(ErrorKind::kValue, !formula.targets.empty(), "a gradient formula names no parameter");
    if (stripped(part.substr(colon + 1)) == "none") {
      all &= ~formula.params;
      without |= formula.params;
      continue;
    }
    formula.expression = parse_custom_expression(part.substr(colon + 1));
    visit_expression(formula.expression, [&](const CustomExpression& e) {
      if (e.kind != Kind::kName) return;
      if (const size_t param = find_param(e.text); param < params_.size()) {
        (is_tensor(params_[param]) ? formula.args : formula.plain) |= uint32_t{1} << param;
        return;
      }
      if (const int result = result_of(e.text); result >= 0) {
        formula.results |= uint32_t{1} << result;
        return;
      }
      int output = 0;
      const std::string_view digits = std::string_view(e.text).substr(std::min<size_t>(1, e.text.size()));
      const bool is_gradient =
          e.text[0] == 'g' &&
          (digits.empty() || (digits.size() <= 2 &&
                              std::from_chars(digits.data(), digits.data() + digits.size(), output).ptr ==
                                  digits.data() + digits.size() &&
                              output < op_.num_outputs));
      check(ErrorKind::kValue, is_gradient || parse_dtype(e.text).has_value(),
            "a gradient formula names neither a parameter nor a result nor a gradient: ", e.text);
    });
    saved_.push_back({formula.params, formula.args, formula.results});
    formulas_.push_back(std::move(formula));
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    params_[i].differentiable = (all >> i & 1) != 0;
    check(ErrorKind::kValue, params_[i].type != ParamType::kTensor || ((all | without) >> i & 1) != 0,
          "expected a gradient for '", message_part(params_[i].name), "'; 'none' if the results do not depend on it");
  }
  op_.differentiable = all != 0;
}

std::vector<BodyStep> CustomOperator::steps(Args args) const { return lower_body(*body_, params_, args); }

void CustomOperator::infer(Args args, Inference* out) const {
  if (body_) return infer_steps(steps(args), args, out);
  if (rule_) return rule_(*this, args, out);
  if (declaration_.has_rule) return infer_by_reply(args, out);
  for (size_t i = 0; i < shapes_.size(); ++i) {
    TensorMeta& meta = out->outputs.emplace_back();
    meta.sizes = evaluate_shape(shapes_[i], params_, args);
    meta.strides = contiguous_strides(meta.sizes);
    meta.dtype = dtypes_.empty() ? promoted_dtype(args) : evaluate_dtype(dtypes_[i], params_, args);
  }
}

}  // namespace tt
