#include "engine/schema/custom_rules.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {
namespace {

using Kind = CustomExpression::Kind;

[[noreturn]] void refuse(const std::string& why) { fail(ErrorKind::kValue, why); }

// Of what a rule concatenates, so that a client's list does not grow with each term.
constexpr size_t kMaxList = 4096;

// The language of shape rules: integers and lists of integers.

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
    if (e.text == "size" && e.items.size() == 2) return of(entry(of(tensor(e.items[0]).sizes), number(e.items[1])));
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
    if (e.text == "neg") {
      int64_t negative = 0;
      check(ErrorKind::kValue, !a.is_list, "expected a number in a shape rule, got a list");
      check(ErrorKind::kValue, !__builtin_sub_overflow(int64_t{0}, a.number, &negative),
            "a shape rule exceeds 64 bits");
      return of(negative);
    }
    if (e.items.size() != 2) refuse(absl::StrCat("unknown function in a shape rule: ", e.text));
    const ShapeValue b = evaluate(e.items[1]);
    if (a.is_list && b.is_list && e.text == "add") {
      check(ErrorKind::kValue, a.list.size() + b.list.size() <= kMaxList, "a list in a shape rule has at most ",
            kMaxList, " numbers, got ", a.list.size() + b.list.size());
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

}  // namespace

Sizes evaluate_shape(const CustomExpression& rule, absl::Span<const Param> params, Args args) {
  return ShapeEvaluator(params, args).sizes(rule);
}

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
    if (const std::optional<DType> dtype = parse_dtype(e.text)) return *dtype;
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

DType promoted_dtype(Args args) {
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

}  // namespace tt
