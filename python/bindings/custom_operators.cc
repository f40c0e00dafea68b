#include "python/bindings/custom_operators.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/session/custom_operators.h"
#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"
#include "python/bindings/tensor/gil.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/operators.h"

namespace py = pybind11;

namespace tt::python {
namespace {

// A (number, name, schema, documentation, whether the engine differentiates it) per operator of the current session's
// engine.
py::list custom_operators() {
  client::Session& session = current_session();
  std::vector<const CustomOperator*> all;
  {
    ReleaseGil released;  // the first call of a session waits
    all = client::custom_operators(session);
  }
  py::list rows;
  for (const CustomOperator* op : all) {
    rows.append(py::make_tuple(op->op().id, std::string(op->name()), op->declaration().schema, std::string(op->doc()),
                               op->has_gradient()));
  }
  return rows;
}

// The function of an operator. Kept as long as the process.
const Entry& entry_of(const CustomOperator& op) {
  struct Kept {
    std::string name;
    uint16_t id;
    Entry entry;
  };
  static auto* const kept = new absl::flat_hash_map<uint16_t, std::unique_ptr<Kept>>();  // guarded by the GIL
  std::unique_ptr<Kept>& found = (*kept)[op.op().id];
  if (!found) {
    found = std::make_unique<Kept>();
    found->name = op.name();
    found->id = op.op().id;
    found->entry = {found->name.c_str(), absl::MakeConstSpan(&found->id, 1), {}};
  }
  return found->entry;
}

// Refuses what call_entry() accepts for operators of PyTorch's names besides their parameters: out=, requires_grad=,
// sizes as several arguments.
void require_declared(const CustomOperator& op, const py::args& args, const py::kwargs& keywords) {
  const absl::Span<const Param> params = op.op().params;
  const auto positional = static_cast<size_t>(
      std::count_if(params.begin(), params.end(), [](const Param& param) { return !param.keyword_only; }));
  check(ErrorKind::kType, args.size() <= positional, "[", op.name(), "] takes ", positional,
        " positional arguments, got ", args.size());
  for (const auto& [name, value] : keywords) {
    const std::string given = py::cast<std::string>(name);
    const bool is_declared =
        std::any_of(params.begin(), params.end(), [&](const Param& param) { return param.name == given; });
    check(ErrorKind::kType, is_declared, "[", op.name(), "] got the unexpected argument '", given, "'");
  }
}

py::object call_custom(uint16_t id, const py::args& args, const py::kwargs& keywords) {
  const CustomOperator* const op = find_custom_op(id);
  check(ErrorKind::kValue, op != nullptr, "[call_custom] expected the number of a custom operator, got ", id);
  require_declared(*op, args, keywords);
  std::vector<PyObject*> values;
  for (py::handle value : args) values.push_back(value.ptr());
  py::tuple names(keywords.size());
  size_t i = 0;
  for (const auto& [name, value] : keywords) {
    names[i++] = name;
    values.push_back(value.ptr());
  }
  const PythonCall call{nullptr, values.data(), static_cast<Py_ssize_t>(args.size()),
                        keywords.empty() ? nullptr : names.ptr()};
  PyObject* const result = call_entry(entry_of(*op), nullptr, call, false);
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

}  // namespace

void bind_custom_operators(py::module_& m) {
  m.def("custom_operators", &custom_operators,
        "(number, name, schema, documentation, has a gradient) of each operator that the current session's engine has "
        "loaded. Waits at the session's first use.");
  m.def("call_custom", &call_custom, "Calls an operator of custom_operators() by its number.");
}

}  // namespace tt::python
