#include "python/bindings/operator_table.h"

#include <complex>
#include <string>

#include "engine/schema/device.h"
#include "engine/schema/dtype.h"
#include "engine/schema/op.h"

namespace py = pybind11;

namespace tt::python {
namespace {

const char* name_of(ParamType type) {
  switch (type) {
    case ParamType::kTensor: return "Tensor";
    case ParamType::kTensors: return "Tensor[]";
    case ParamType::kScalar: return "Scalar";
    case ParamType::kInt: return "int";
    case ParamType::kFloat: return "float";
    case ParamType::kBool: return "bool";
    case ParamType::kInts: return "int[]";
    case ParamType::kFloats: return "float[]";
    case ParamType::kString: return "str";
    case ParamType::kDType: return "DType";
    case ParamType::kDevice: return "Device";
  }
  return "";
}

template <typename T>
py::list list_of(absl::Span<const T> values) {
  py::list list;
  for (T value : values) list.append(value);
  return list;
}

// A declared default: a number, a string, a list, or None. Dtypes and devices are their numbers in instructions.
py::object default_of(const Param& param) {
  const Arg& arg = param.default_value;
  switch (arg.kind) {
    case Arg::Kind::kBool: return py::bool_(arg.integer != 0);
    case Arg::Kind::kInt: return py::int_(arg.integer);
    case Arg::Kind::kFloat: return py::float_(arg.real);
    case Arg::Kind::kComplex: return py::cast(std::complex<double>(arg.real, arg.imaginary));
    case Arg::Kind::kInts: return list_of(arg.ints());
    case Arg::Kind::kFloats: return list_of(arg.floats());
    case Arg::Kind::kString: return py::str(std::string(arg.string()));
    default: return py::none();
  }
}

py::dict describe(const Param& param) {
  py::dict d;
  d["name"] = std::string(param.name);
  d["type"] = name_of(param.type);
  if (param.optional) d["optional"] = true;
  if (param.optional_entries) d["optional_entries"] = true;
  if (param.keyword_only) d["keyword_only"] = true;
  if (param.accepts_number) d["accepts_number"] = true;
  if (param.written) d["written"] = true;
  if (param.has_default) d["default"] = default_of(param);
  return d;
}

py::dict operator_table() {
  py::list operators;
  for (const Op* op : all_ops()) {
    py::list parameters;
    for (const Param& param : op->params) parameters.append(describe(param));
    py::dict d;
    d["id"] = op->id;
    d["name"] = std::string(op->name);
    d["parameters"] = parameters;
    d["results"] = op->num_outputs;
    operators.append(d);
  }
  py::dict dtypes;
  for (int i = 0; i < kNumDTypes; ++i) dtypes[py::str(std::string(name(static_cast<DType>(i))))] = i;
  py::dict table;
  table["schema_digest"] = schema_digest();
  table["dtypes"] = dtypes;
  table["operators"] = operators;
  return table;
}

}  // namespace

void bind_operator_table(py::module_& m) {
  m.def("operator_table", &operator_table,
        "The operators, their parameters, and the numbers of dtypes, as in instructions (docs/protocol-clients.md).");
}

}  // namespace tt::python
