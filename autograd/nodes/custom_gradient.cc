#include "autograd/nodes/custom_gradient.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "autograd/formulas/formulas.h"
#include "autograd/nodes/operator_node.h"
#include "base/mutex.h"
#include "engine/dispatch/expression.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"

namespace tt::autograd {
namespace {

using Kind = CustomExpression::Kind;

// A value of a formula: tensors, or a number, text or nothing in `arg`, or a list of values.
struct Value {
  enum class Is : uint8_t { kTensors, kArg, kList };
  Is is = Is::kArg;
  Tensors tensors;  // one, or an operator's several results
  bool is_single = true;
  Arg arg;
  std::vector<Value> list;

  static Value of(Tensor tensor) {
    Value value;
    value.is = Is::kTensors;
    value.tensors.push_back(std::move(tensor));
    return value;
  }
  static Value of(const Arg& arg) {
    Value value;
    value.arg = arg;
    return value;
  }
  static Value of(SizesView sizes) {
    Value value;
    value.is = Is::kList;
    for (int64_t size : sizes) value.list.push_back(of(Arg(size)));
    return value;
  }
  bool is_tensor() const { return is == Is::kTensors && is_single; }
  bool is_number() const { return is == Is::kArg && arg.is_number(); }
};

// Evaluates a formula in one run of a node.
class Evaluator {
 public:
  Evaluator(Backward& backward, const CustomOperator& op) : backward_(backward), op_(op) {}

  Value evaluate(const CustomExpression& e) {
    switch (e.kind) {
      case Kind::kNumber: return Value::of(Arg(e.number));
      case Kind::kNone: return {};
      case Kind::kString: return Value::of(Arg(std::string_view(e.text)));
      case Kind::kName: return named(e.text);
      case Kind::kList: {
        Value list;
        list.is = Value::Is::kList;
        for (const CustomExpression& item : e.items) list.list.push_back(evaluate(item));
        return list;
      }
      case Kind::kAttribute: return attribute(evaluate(e.items[0]), e.text);
      case Kind::kIndex: return entry(evaluate(e.items[0]), evaluate(e.items[1]));
      case Kind::kCall: return call(e);
    }
    return {};
  }

 private:
  // The number at the end of a name such as "result1"; 0 for "result".
  static uint32_t number_in(std::string_view name, size_t prefix) {
    uint32_t number = 0;
    for (char c : name.substr(prefix)) number = 10 * number + static_cast<uint32_t>(c - '0');
    return number;
  }

  // Names were checked when the operator was declared.
  Value named(const std::string& name) {
    const absl::Span<const Param> params = op_.op().params;
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].name != name) continue;
      const auto at = static_cast<int16_t>(i);
      if (params[i].type == ParamType::kTensors) {
        Value value;
        value.is = Value::Is::kTensors;
        value.is_single = false;
        value.tensors = backward_.list(at);
        return value;
      }
      if (params[i].type != ParamType::kTensor) return Value::of(backward_.arg(i));
      const Tensor tensor = backward_.tensor(at);
      return tensor ? Value::of(tensor) : Value();
    }
    if (const auto dtype = parse_dtype(name)) return Value::of(Arg(*dtype));
    if (name.starts_with("result")) return Value::of(backward_.result(static_cast<int16_t>(number_in(name, 6))));
    return Value::of(backward_.gradient(number_in(name, 1)));
  }

  static Value attribute(const Value& of, const std::string& name) {
    check(of.is_tensor(), "a formula reads .", name, " of something that is not a Tensor");
    if (name == "shape") return Value::of(SizesView(of.tensors[0].sizes()));
    if (name == "dtype") return Value::of(Arg(of.tensors[0].dtype()));
    fail(ErrorKind::kValue, "a formula reads the unknown attribute .", name);
  }

  static Value entry(const Value& of, const Value& index) {
    check(index.is == Value::Is::kArg && index.arg.kind == Arg::Kind::kInt,
          "a formula has an index that is no integer");
    const auto size = static_cast<int64_t>(of.is == Value::Is::kTensors ? of.tensors.size() : of.list.size());
    const int64_t at = index.arg.integer < 0 ? index.arg.integer + size : index.arg.integer;
    check(ErrorKind::kIndex, !of.is_tensor() && of.is != Value::Is::kArg && at >= 0 && at < size,
          "a formula has the index ", index.arg.integer, " of ", size, " values");
    if (of.is == Value::Is::kTensors) return Value::of(of.tensors[static_cast<size_t>(at)]);
    return of.list[static_cast<size_t>(at)];
  }

  static std::optional<Scalar> of_numbers(const std::string& op, absl::Span<const Value> given) {
    const auto scalar = [&](size_t i) { return given[i].arg.scalar(); };
    if (given.size() == 1 && op == "neg") return number::neg(scalar(0));
    if (given.size() != 2) return std::nullopt;
    if (op == "add") return number::add(scalar(0), scalar(1));
    if (op == "sub") return number::sub(scalar(0), scalar(1));
    if (op == "mul") return number::mul(scalar(0), scalar(1));
    if (op == "true_divide") return number::div(scalar(0), scalar(1));
    if (op == "pow") return number::pow(scalar(0), scalar(1));
    return std::nullopt;
  }

  Value call(const CustomExpression& e) {
    std::vector<Value> given;
    given.reserve(e.items.size());
    for (const CustomExpression& item : e.items) given.push_back(evaluate(item));
    if (e.keywords.empty() && !given.empty() &&
        std::all_of(given.begin(), given.end(), [](const Value& v) { return v.is_number(); })) {
      if (const std::optional<Scalar> value = of_numbers(e.text, given)) return Value::of(Arg(*value));
    }
    const Op* const op = find_op(std::string_view(e.text));
    check(op != nullptr, "a formula calls the unknown operator ", e.text);
    check(given.size() <= op->params.size(), "a formula passes ", given.size(), " arguments to ", e.text,
          ", which takes ", op->params.size());
    std::vector<const Value*> values(op->params.size(), nullptr);
    for (size_t i = 0; i < given.size(); ++i) values[i] = &given[i];
    std::deque<Value> keywords;
    for (const auto& [name, expression] : e.keywords) {
      size_t i = 0;
      while (i < values.size() && op->params[i].name != name) ++i;
      check(i < values.size() && values[i] == nullptr, "a formula passes the argument '", name, "' to ", e.text,
            ", which does not take it");
      values[i] = &keywords.emplace_back(evaluate(expression));
    }
    Memory memory;
    std::vector<Arg> args;
    args.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      args.push_back(values[i] != nullptr ? convert(*values[i], op->params[i], &memory) : op->params[i].default_value);
    }
    op->check_args(args);
    Tensors results = ops::call(op->id, args);
    if (op->num_outputs == 1) return Value::of(std::move(results[0]));
    Value several;
    several.is = Value::Is::kTensors;
    several.is_single = false;
    several.tensors = std::move(results);
    return several;
  }

  // What the arguments of a call point to.
  struct Memory {
    std::deque<std::vector<const TensorMeta*>> tensors;
    std::deque<std::vector<int64_t>> integers;
    std::deque<std::vector<double>> reals;
  };

  static Arg convert(const Value& value, const Param& param, Memory* memory) {
    if (value.is_tensor() && param.type != ParamType::kTensors) return Arg(value.tensors[0].get());
    if (value.is == Value::Is::kTensors) {
      auto& list = memory->tensors.emplace_back();
      for (const Tensor& tensor : value.tensors) list.push_back(tensor.get());
      return Arg(absl::MakeConstSpan(list));
    }
    const bool is_ints = param.type == ParamType::kInts;
    if (value.is == Value::Is::kArg) {
      if (!is_ints || value.arg.kind != Arg::Kind::kInt) return value.arg;
      return Arg(absl::MakeConstSpan(memory->integers.emplace_back(1, value.arg.integer)));
    }
    if (param.type == ParamType::kTensors) {
      auto& list = memory->tensors.emplace_back();
      for (const Value& item : value.list) {
        check(item.is_tensor(), "a formula passes a list for '", param.name, "' that is not of Tensors");
        list.push_back(item.tensors[0].get());
      }
      return Arg(absl::MakeConstSpan(list));
    }
    for (const Value& item : value.list) check(item.is_number(), "a formula passes a list that is not of numbers");
    if (is_ints) {
      auto& list = memory->integers.emplace_back();
      for (const Value& item : value.list) list.push_back(item.arg.scalar().to_int());
      return Arg(absl::MakeConstSpan(list));
    }
    auto& list = memory->reals.emplace_back();
    for (const Value& item : value.list) list.push_back(item.arg.to_double());
    return Arg(absl::MakeConstSpan(list));
  }

  Backward& backward_;
  const CustomOperator& op_;
};

// Sums a gradient over the dimensions in which its argument was broadcast.
Tensor fitted(const CustomOperator& op, size_t param, Tensor gradient, const Sizes& sizes) {
  if (!gradient || gradient.sizes() == sizes) return gradient;
  const Sizes& from = gradient.sizes();
  bool fits = from.size() >= sizes.size();
  for (size_t d = 0; fits && d < sizes.size(); ++d) {
    const int64_t theirs = from[from.size() - sizes.size() + d];
    fits = sizes[d] == theirs || sizes[d] == 1;
  }
  check(fits, "[", op.name(), "] the gradient for '", op.op().params[param].name, "' has the sizes ", from,
        ", expected ", sizes);
  return formulas::sum_to(gradient, sizes);
}

void run(Backward& b) {
  const CustomOperator& op = *find_custom_op(b.op().id);
  Evaluator evaluator(b, op);
  for (const CustomFormula& formula : op.formulas()) {
    const bool is_needed =
        std::any_of(formula.targets.begin(), formula.targets.end(), [&](size_t param) { return b.needs(param); });
    if (!is_needed) continue;
    Value value = evaluator.evaluate(formula.expression);
    check(value.is == Value::Is::kTensors && value.tensors.size() == formula.targets.size(), "[", op.name(),
          "] expected ", formula.targets.size(), " tensors from a gradient formula, got ",
          value.is == Value::Is::kTensors ? value.tensors.size() : 0);
    for (size_t i = 0; i < formula.targets.size(); ++i) {
      const size_t param = formula.targets[i];
      if (!b.needs(param)) continue;
      const Sizes sizes = b.meta(static_cast<int16_t>(param)).sizes;
      b.set_gradient(param, fitted(op, param, std::move(value.tensors[i]), sizes));
    }
  }
}

struct Held {
  std::vector<GradientPart> parts;
  Gradient gradient;
};

}  // namespace

const Gradient* find_custom_gradient(uint16_t id) {
  const CustomOperator* const op = find_custom_op(id);
  if (op == nullptr || op->formulas().empty()) return nullptr;
  static Mutex mutex;
  static auto* const all = new absl::flat_hash_map<uint16_t, std::unique_ptr<const Held>>();
  MutexLock lock(mutex);
  std::unique_ptr<const Held>& held = (*all)[id];
  if (!held) {
    auto made = std::make_unique<Held>();
    for (const CustomFormula& formula : op->formulas()) {
      made->parts.push_back({formula.params, formula.args, formula.params & ~formula.args, formula.results});
      made->gradient.plain |= formula.plain;
    }
    made->gradient.run = &run;
    made->gradient.parts = made->parts;
    held = std::move(made);
  }
  return &held->gradient;
}

}  // namespace tt::autograd
