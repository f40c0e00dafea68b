#include "python/bindings/size_facts.h"

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/session/default_dtype.h"
#include "engine/schema/default_float.h"
#include "engine/schema/error.h"
#include "engine/schema/op.h"
#include "engine/schema/symbolic_infer.h"
#include "engine/symbolic/facts.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"
#include "python/bindings/tensor/types.h"

namespace py = pybind11;

namespace tt::python {
namespace {

using symbolic::Facts;
using symbolic::Relation;

// `left <sign> right` as a statement about one expression.
struct Comparison {
  symbolic::Expression expression;
  Relation relation;
  bool expected;  // whether the statement is to hold
};

Comparison comparison(Facts& facts, const std::string& sign, int64_t left, int64_t right) {
  symbolic::Expressions& table = facts.expressions();
  const symbolic::Expression a = expression_of(facts, left), b = expression_of(facts, right);
  if (sign == "==") return {table.subtract(a, b), Relation::kZero, true};
  if (sign == "!=") return {table.subtract(a, b), Relation::kZero, false};
  if (sign == ">=") return {table.subtract(a, b), Relation::kNotNegative, true};
  if (sign == "<") return {table.subtract(a, b), Relation::kNotNegative, false};
  if (sign == "<=") return {table.subtract(b, a), Relation::kNotNegative, true};
  check(ErrorKind::kValue, sign == ">", "[SizeFacts] expected a relation, got ", sign);
  return {table.subtract(b, a), Relation::kNotNegative, false};
}

int64_t compute(Facts& facts, const std::string& sign, int64_t a, int64_t b) {
  const symbolic::Scope scope(facts);
  if (sign == "+") return symbolic::add(a, b);
  if (sign == "-") return symbolic::subtract(a, b);
  if (sign == "*") return symbolic::multiply(a, b);
  if (sign == "//") return symbolic::floor_divide(a, b);
  if (sign == "%") return symbolic::modulo(a, b);
  if (sign == "min") return symbolic::minimum(a, b);
  check(ErrorKind::kValue, sign == "max", "[SizeFacts] expected an operation, got ", sign);
  return symbolic::maximum(a, b);
}

// A range's ends; None is unbounded.
std::optional<int64_t> end_of(int64_t end) {
  return end == INT64_MIN || end == INT64_MAX ? std::nullopt : std::optional(end);
}

symbolic::Range range_of(std::optional<int64_t> low, std::optional<int64_t> high) {
  return {low.value_or(INT64_MIN), high.value_or(INT64_MAX)};
}

py::list parts_of(const Facts& facts, symbolic::Expression e) {
  py::list terms;
  for (const symbolic::Expressions::Part& part : facts.expressions().parts(e)) {
    py::list factors;
    for (const symbolic::Expressions::Factor& factor : part.factors) {
      py::list operands;
      for (const symbolic::Expression operand : factor.operands) operands.append(number_of(facts, operand));
      factors.append(py::make_tuple(std::string(factor.sign), factor.symbol, operands));
    }
    terms.append(py::make_tuple(part.coefficient, factors));
  }
  return terms;
}

py::list infer_results(Facts& facts, const std::string& name, const py::args& args, const py::kwargs& keywords) {
  const Op* op = find_op(name);
  check(ErrorKind::kValue, op != nullptr, "[SizeFacts] expected the name of an operator, got ", name);
  const symbolic::Scope scope(facts);
  std::vector<PyObject*> objects;
  for (py::handle object : static_cast<const py::tuple&>(args)) objects.push_back(object.ptr());
  py::tuple names(keywords.size());
  for (const auto& [key, value] : keywords) {
    names[objects.size() - args.size()] = key;
    objects.push_back(value.ptr());
  }
  ParsedArgs parsed;
  std::string why;
  const PythonCall call{nullptr, objects.data(), static_cast<Py_ssize_t>(args.size()), names.ptr()};
  check(ErrorKind::kType, parse(*op, call, &parsed, &why), op->name, "(): ", why);
  const DefaultFloat default_float(client::default_dtype());
  Inference inferred;
  infer_symbolic(*op, parsed.args, false, &inferred);
  py::list results;
  for (const TensorMeta& meta : inferred.outputs) {
    results.append(py::make_tuple(std::vector<int64_t>(meta.sizes.begin(), meta.sizes.end()),
                                  std::vector<int64_t>(meta.strides.begin(), meta.strides.end()), meta.offset));
  }
  return results;
}

}  // namespace

void bind_size_facts(py::module_& m) {
  py::register_exception<symbolic::Undecided>(m, "UndecidedError", PyExc_RuntimeError);
  py::class_<Facts> facts(
      m, "SizeFacts",
      "What is known of the symbols of a recorded function. Numbers are ints of which some, beyond those of sizes, "
      "stand for expressions.");
  facts.def(py::init([] { return std::make_unique<Facts>(); }))
      .def(
          "symbol",
          [](Facts& f, std::optional<int64_t> low, std::optional<int64_t> high, std::optional<int64_t> example) {
            return number_of(f, f.symbol(range_of(low, high), example));
          },
          py::arg("low"), py::arg("high"), py::arg("example"))
      .def("compute", &compute)
      .def("simplified", [](Facts& f, int64_t n) { return number_of(f, f.simplified(expression_of(f, n))); })
      .def("example", [](Facts& f, int64_t n) { return f.example_of(expression_of(f, n)); })
      .def("bounds",
           [](Facts& f, int64_t n) {
             const symbolic::Range range = f.expressions().range(f.simplified(expression_of(f, n)));
             return py::make_tuple(end_of(range.low), end_of(range.high));
           })
      .def("known",
           [](Facts& f, const std::string& sign, int64_t a, int64_t b) -> std::optional<bool> {
             const Comparison c = comparison(f, sign, a, b);
             const std::optional<bool> outcome = f.known(c.expression, c.relation);
             return outcome ? std::optional(*outcome == c.expected) : std::nullopt;
           })
      .def("decide",
           [](Facts& f, const std::string& sign, int64_t a, int64_t b) {
             const Comparison c = comparison(f, sign, a, b);
             return f.decide(c.expression, c.relation) == c.expected;
           })
      .def("assume",
           [](Facts& f, const std::string& sign, int64_t a, int64_t b) {
             const Comparison c = comparison(f, sign, a, b);
             return f.assume(c.expression, c.relation, c.expected);
           })
      .def("specialise", [](Facts& f, int64_t n) { return f.specialise(expression_of(f, n)); })
      .def("guards",
           [](const Facts& f) {
             py::list found;
             for (const symbolic::Guard& guard : f.guards()) {
               const bool is_zero = guard.relation == Relation::kZero;
               const char* sign = is_zero ? (guard.expected ? "==" : "!=") : (guard.expected ? ">=" : "<");
               found.append(py::make_tuple(number_of(f, guard.expression), sign));
             }
             return found;
           })
      .def("guard_count", [](const Facts& f) { return f.guards().size(); })
      .def("take_hinted", &Facts::take_hinted)
      .def("forget", &Facts::forget)
      .def("narrow",
           [](Facts& f, int32_t symbol, std::optional<int64_t> low, std::optional<int64_t> high) {
             check(ErrorKind::kValue, symbol >= 0 && static_cast<size_t>(symbol) < f.expressions().symbols(),
                   "[SizeFacts] expected the number of a symbol, got ", symbol);
             f.expressions().narrow(symbol, range_of(low, high));
           })
      .def("parts", [](Facts& f, int64_t n) { return parts_of(f, expression_of(f, n)); })
      .def("infer", &infer_results);
  m.attr("FIRST_EXPRESSION") = symbolic::kFirstNumber;
  m.attr("MOST_EXPRESSIONS") = int64_t{1} << 31;
}

}  // namespace tt::python
