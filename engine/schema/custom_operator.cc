#include "engine/schema/custom_operator.h"

#include <algorithm>
#include <charconv>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/mutex.h"
#include "engine/schema/custom_query.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {
namespace {

using Kind = CustomExpression::Kind;

constexpr size_t kMaxSchema = 4096, kMaxParams = 32, kMaxResults = 16, kMaxText = 1 << 16, kMaxReplies = 4096;

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

// ---- The language of shape rules: integers and lists of integers.

struct ShapeValue {
  bool is_list = false;
  int64_t number = 0;
  Sizes list;
};

class ShapeEvaluator {
 public:
  ShapeEvaluator(absl::Span<const Param> params, Args args) : params_(params), args_(args) {}

  Sizes sizes(const CustomExpression& expression) const {
    const ShapeValue value = evaluate(expression);
    check(ErrorKind::kValue, value.is_list, "a shape rule has to be a list of sizes");
    for (int64_t size : value.list) {
      check(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", value.list);
    }
    return value.list;
  }

 private:
  const Arg& argument(std::string_view name) const {
    for (size_t i = 0; i < params_.size(); ++i) {
      if (params_[i].name == name) return args_[i];
    }
    refuse(absl::StrCat("a rule names no parameter: ", message_part(name)));
  }
  const TensorMeta& tensor(const CustomExpression& expression) const {
    if (expression.kind == Kind::kName) {
      const Arg& arg = argument(expression.text);
      if (arg.kind == Arg::Kind::kTensor) return *arg.tensor;
      refuse(absl::StrCat("a rule reads the sizes of '", expression.text, "', which is not a Tensor in this call"));
    }
    if (expression.kind == Kind::kIndex && expression.items[0].kind == Kind::kName) {
      const Arg& arg = argument(expression.items[0].text);
      const int64_t index = number(expression.items[1]);
      if (arg.kind == Arg::Kind::kTensors && index >= 0 && index < arg.size && arg.list()[static_cast<size_t>(index)])
        return *arg.list()[static_cast<size_t>(index)];
    }
    refuse("a rule reads the sizes of something that is not a Tensor");
  }
  int64_t number(const CustomExpression& expression) const {
    const ShapeValue value = evaluate(expression);
    check(ErrorKind::kValue, !value.is_list, "expected a number, got a list");
    return value.number;
  }
  static ShapeValue of(int64_t number) { return {false, number, {}}; }
  static ShapeValue of(Sizes list) { return {true, 0, std::move(list)}; }

  ShapeValue evaluate(const CustomExpression& e) const {
    switch (e.kind) {
      case Kind::kNumber: return of(e.number.to_int());
      case Kind::kName: {
        const Arg& arg = argument(e.text);
        if (arg.kind == Arg::Kind::kInt || arg.kind == Arg::Kind::kBool) return of(arg.integer);
        if (arg.kind == Arg::Kind::kInts) return of(Sizes(arg.ints().begin(), arg.ints().end()));
        refuse(absl::StrCat("a rule reads '", e.text, "', which is no integer in this call"));
      }
      case Kind::kList: {
        Sizes list;
        for (const CustomExpression& item : e.items) list.push_back(number(item));
        return of(std::move(list));
      }
      case Kind::kAttribute:
        check(ErrorKind::kValue, e.text == "shape", "expected .shape, got .", e.text);
        return of(tensor(e.items[0]).sizes);
      case Kind::kIndex: {
        const ShapeValue list = evaluate(e.items[0]);
        return of(entry(list, number(e.items[1])));
      }
      case Kind::kCall: return call(e);
      case Kind::kString:
      case Kind::kNone: break;
    }
    refuse("a shape rule is made of sizes and integers");
  }
  static int64_t entry(const ShapeValue& list, int64_t index) {
    const auto size = static_cast<int64_t>(list.list.size());
    check(ErrorKind::kValue, list.is_list, "expected a list, got a number");
    check(ErrorKind::kIndex, index >= -size && index < size, "Dimension out of range (expected to be in range of [",
          -std::max<int64_t>(size, 1), ", ", std::max<int64_t>(size, 1) - 1, "], but got ", index, ")");
    return list.list[static_cast<size_t>(index < 0 ? index + size : index)];
  }
  ShapeValue call(const CustomExpression& e) const {
    if (e.text == "same" && e.items.size() == 1) return of(tensor(e.items[0]).sizes);
    if (e.text == "equal" && !e.items.empty()) {
      const Sizes& sizes = tensor(e.items[0]).sizes;
      for (const CustomExpression& item : e.items) {
        check(tensor(item).sizes == sizes, "expected tensors of equal sizes, got ", sizes, " and ", tensor(item).sizes);
      }
      return of(sizes);
    }
    if (e.text == "dim" && e.items.size() == 1) return of(tensor(e.items[0]).dim());
    if (e.text == "size" && e.items.size() == 2)
      return of(entry(of(tensor(e.items[0]).sizes), number(e.items[1])));
    if (e.text == "broadcast" && !e.items.empty()) {
      Sizes sizes = tensor(e.items[0]).sizes;
      for (size_t i = 1; i < e.items.size(); ++i) {
        if (e.items[i].kind == Kind::kName && argument(e.items[i].text).is_none()) continue;
        sizes = shape_rules::broadcast_sizes(sizes, tensor(e.items[i]).sizes);
      }
      return of(std::move(sizes));
    }
    if (e.items.empty() || e.items.size() > 2) refuse(absl::StrCat("unknown function in a shape rule: ", e.text));
    const ShapeValue a = evaluate(e.items[0]);
    if (e.text == "neg") return of(-a.number);
    if (e.items.size() != 2) refuse(absl::StrCat("unknown function in a shape rule: ", e.text));
    const ShapeValue b = evaluate(e.items[1]);
    if (a.is_list && b.is_list && e.text == "add") {
      Sizes both = a.list;
      both.insert(both.end(), b.list.begin(), b.list.end());
      return of(std::move(both));
    }
    check(ErrorKind::kValue, !a.is_list && !b.is_list, "expected numbers in a shape rule, got a list");
    int64_t result = 0;
    bool overflows = false;
    if (e.text == "add") {
      overflows = __builtin_add_overflow(a.number, b.number, &result);
    } else if (e.text == "sub") {
      overflows = __builtin_sub_overflow(a.number, b.number, &result);
    } else if (e.text == "mul") {
      overflows = __builtin_mul_overflow(a.number, b.number, &result);
    } else if (e.text == "floor_divide") {
      check(ErrorKind::kValue, b.number > 0, "expected a positive divisor in a shape rule, got ", b.number);
      result = a.number / b.number - (a.number % b.number < 0 ? 1 : 0);
    } else if (e.text == "max") {
      result = std::max(a.number, b.number);
    } else if (e.text == "min") {
      result = std::min(a.number, b.number);
    } else {
      refuse(absl::StrCat("unknown function in a shape rule: ", e.text));
    }
    check(ErrorKind::kValue, !overflows, "a shape rule exceeds 64 bits");
    return of(result);
  }

  const absl::Span<const Param> params_;
  const Args args_;
};

// ---- Dtype rules.

DType evaluate_dtype(const CustomExpression& e, absl::Span<const Param> params, Args args) {
  const auto find = [&](std::string_view name) -> const Arg* {
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].name == name) return &args[i];
    }
    return nullptr;
  };
  if (e.kind == Kind::kName) {
    if (const Arg* arg = find(e.text)) {
      if (arg->kind == Arg::Kind::kTensor) return arg->tensor->dtype;
      if (arg->kind == Arg::Kind::kInt && is_valid(arg->integer)) return arg->dtype();
      refuse(absl::StrCat("a dtype rule names '", e.text, "', which has no dtype in this call"));
    }
    if (const std::optional<DType> dtype = parse_dtype(e.text == "bool" ? "bool" : e.text)) return *dtype;
    refuse(absl::StrCat("a dtype rule names no parameter and no dtype: ", e.text));
  }
  if (e.kind == Kind::kAttribute && e.text == "dtype") return evaluate_dtype(e.items[0], params, args);
  if (e.kind == Kind::kIndex && e.items[0].kind == Kind::kName) {
    const Arg* const arg = find(e.items[0].text);
    const int64_t index = e.items[1].number.to_int();
    if (arg != nullptr && arg->kind == Arg::Kind::kTensors && index >= 0 && index < arg->size &&
        arg->list()[static_cast<size_t>(index)])
      return arg->list()[static_cast<size_t>(index)]->dtype;
  }
  if (e.kind != Kind::kCall || e.items.empty()) refuse("a dtype rule is a dtype, a parameter, or a function of them");
  DType dtype = evaluate_dtype(e.items[0], params, args);
  if (e.text == "same" && e.items.size() == 1) return dtype;
  if (e.text == "floating" && e.items.size() == 1) return to_float(dtype);
  if (e.text == "real" && e.items.size() == 1) return to_real(dtype);
  if (e.text != "promote") refuse(absl::StrCat("unknown function in a dtype rule: ", e.text));
  for (size_t i = 1; i < e.items.size(); ++i) {
    if (e.items[i].kind == Kind::kName) {
      if (const Arg* arg = find(e.items[i].text); arg && arg->is_none()) continue;
    }
    dtype = promote(dtype, evaluate_dtype(e.items[i], params, args));
  }
  return dtype;
}

DType promoted(Args args) {
  std::optional<DType> dtype;
  const auto add = [&](const TensorMeta* t) {
    if (t != nullptr) dtype = dtype ? promote(*dtype, t->dtype) : t->dtype;
  };
  for (const Arg& arg : args) {
    if (arg.kind == Arg::Kind::kTensor) add(arg.tensor);
    if (arg.kind != Arg::Kind::kTensors) continue;
    for (const TensorMeta* t : arg.list()) add(t);
  }
  return dtype.value_or(kDefaultFloat);
}

// ---- Arithmetic of numbers in bodies.

std::optional<Scalar> fold(std::string_view op, absl::Span<const Scalar> numbers) {
  const auto all = [&](auto predicate) { return std::all_of(numbers.begin(), numbers.end(), predicate); };
  if (!all([](const Scalar& s) { return s.is_real(); })) return std::nullopt;
  const bool integral = all([](const Scalar& s) { return is_integral(s.dtype()); });
  const double x = numbers[0].to_double(), y = numbers.size() > 1 ? numbers[1].to_double() : 0;
  const int64_t i = numbers[0].to_int(), j = numbers.size() > 1 ? numbers[1].to_int() : 0;
  int64_t result = 0;
  if (numbers.size() == 1 && op == "neg") return integral ? Scalar(-i) : Scalar(-x);
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
    check(ErrorKind::kValue, result.from == Source::From::kStep, "a body has to call at least one operator of a Tensor");
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
    for (const CustomExpression& item : e.items) given.push_back(source(item));
    const auto is_number = [](const Source& s) { return s.from == Source::From::kValue && s.value.is_number(); };
    if (!given.empty() && e.keywords.empty() && std::all_of(given.begin(), given.end(), is_number)) {
      std::vector<Scalar> numbers;
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
  static void set(BodyStep* step, std::string_view name, Source value) {
    for (size_t i = 0; i < step->op->params.size(); ++i) {
      if (step->op->params[i].name == name) {
        step->sources[i] = std::move(value);
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

// ---- Declarations.

uint64_t CustomDeclaration::digest() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  };
  for (const std::string* text : {&schema, &shape, &dtype, &body, &gradient}) add(*text);
  hash = (hash ^ (has_rule ? library : 0)) * 0x100000001b3;
  return hash ^ (hash >> 32);
}

std::string encode_declarations(absl::Span<const NumberedDeclaration> declarations) {
  std::string text;
  const auto add = [&](std::string_view part) {
    absl::StrAppend(&text, part.size(), ":");
    text.append(part.data(), part.size());
  };
  for (const auto& [id, d] : declarations) {
    add(std::to_string(id));
    for (const std::string* part : {&d.schema, &d.doc, &d.shape, &d.dtype, &d.body, &d.gradient}) add(*part);
    add(d.has_rule ? std::to_string(d.library) : "");
  }
  return text;
}

std::vector<NumberedDeclaration> decode_declarations(std::string_view text) {
  constexpr size_t kMaxDeclarations = 4096;
  const auto require = [](bool ok) {
    check(ErrorKind::kValue, ok, "the engine's list of custom operators is malformed");
  };
  const auto take = [&]() -> std::string {
    const size_t colon = text.find(':');
    size_t size = 0;
    require(colon != std::string_view::npos && colon > 0 && colon <= 6);
    const auto [end, error] = std::from_chars(text.data(), text.data() + colon, size);
    require(error == std::errc() && end == text.data() + colon && size <= kMaxText && size <= text.size() - colon - 1);
    std::string part(text.substr(colon + 1, size));
    text.remove_prefix(colon + 1 + size);
    return part;
  };
  const auto number = [&](const std::string& part, auto* value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), *value);
    require(error == std::errc() && end == part.data() + part.size());
  };
  std::vector<NumberedDeclaration> all;
  while (!text.empty()) {
    require(all.size() < kMaxDeclarations);
    NumberedDeclaration& one = all.emplace_back();
    number(take(), &one.id);
    CustomDeclaration& d = one.declaration;
    for (std::string* part : {&d.schema, &d.doc, &d.shape, &d.dtype, &d.body, &d.gradient}) *part = take();
    const std::string library = take();
    d.has_rule = !library.empty();
    if (d.has_rule) number(library, &d.library);
  }
  return all;
}

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
  op_.infer = [](Args, Inference*) { fail(ErrorKind::kRuntime, "the rule of a custom operator was called without it"); };
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
        {"Tensor", ParamType::kTensor},     {"Tensor[]", ParamType::kTensors}, {"Scalar", ParamType::kScalar},
        {"int", ParamType::kInt},           {"SymInt", ParamType::kInt},       {"float", ParamType::kFloat},
        {"bool", ParamType::kBool},         {"int[]", ParamType::kInts},       {"SymInt[]", ParamType::kInts},
        {"float[]", ParamType::kFloats},    {"str", ParamType::kString},       {"ScalarType", ParamType::kDType}};
    const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& t) { return t.first == type; });
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
  check(ErrorKind::kValue, !result_names_.empty() && result_names_.size() <= kMaxResults, "expected 1 to ",
        kMaxResults, " results, got ", result_names_.size());
  op_.num_outputs = static_cast<int8_t>(result_names_.size());
}

void CustomOperator::parse_rules() {
  if (declaration_.has_rule) {
    check(ErrorKind::kValue, declaration_.shape.empty() && declaration_.dtype.empty(),
          "expected either a rule function or shape and dtype, got both");
    return;
  }
  check(ErrorKind::kValue, !declaration_.shape.empty(), "expected shape, a rule function or a body");
  for (std::string_view part : split_formulas(declaration_.shape, ';')) shapes_.push_back(parse_custom_expression(part));
  for (std::string_view part : split_formulas(declaration_.dtype, ';')) dtypes_.push_back(parse_custom_expression(part));
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
  for (const Param& param : params_) {
    args.push_back(param.has_default                         ? param.default_value
                   : param.type == ParamType::kFloat         ? Arg(1.5)
                   : param.type == ParamType::kString        ? Arg(std::string_view("none"))
                                                             : Arg(1));
  }
  BodyLowering(params_, args).lower(*body_);
  op_.is_composite = true;
  op_.differentiable = true;
}

void CustomOperator::parse_gradient() {
  const auto result_of = [&](std::string_view name) -> int {
    if (find_param(name) < params_.size() || !name.starts_with("result")) return -1;
    const std::string_view digits = name.substr(6);
    int index = 0;
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
    check(ErrorKind::kValue, colon != std::string_view::npos, "expected 'parameter: formula', got '", message_part(part),
          "'");
    CustomFormula formula;
    for (std::string_view name : split_formulas(part.substr(0, colon), ',')) {
      const size_t param = find_param(name);
      check(ErrorKind::kValue, param < params_.size() && params_[param].type == ParamType::kTensor,
            "a gradient is given for '", message_part(name), "', which is no parameter of type Tensor");
      check(ErrorKind::kValue, ((all | without) >> param & 1) == 0, "two gradients are given for '", message_part(name), "'");
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
          (digits.empty() || (std::from_chars(digits.data(), digits.data() + digits.size(), output).ptr ==
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

std::vector<BodyStep> CustomOperator::steps(Args args) const { return BodyLowering(params_, args).lower(*body_); }

namespace {

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

}  // namespace

void CustomOperator::infer(Args args, Inference* out) const {
  if (body_) return infer_steps(steps(args), args, out);
  if (rule_) return rule_(*this, args, out);
  if (declaration_.has_rule) return infer_by_reply(args, out);
  const ShapeEvaluator evaluator(params_, args);
  for (size_t i = 0; i < shapes_.size(); ++i) {
    TensorMeta& meta = out->outputs.emplace_back();
    meta.sizes = evaluator.sizes(shapes_[i]);
    meta.strides = contiguous_strides(meta.sizes);
    meta.dtype = dtypes_.empty() ? promoted(args) : evaluate_dtype(dtypes_[i], params_, args);
  }
}

}  // namespace tt
