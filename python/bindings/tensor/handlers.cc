#include "python/bindings/tensor/handlers.h"

#include "python/bindings/tensor/torch_dispatch.h"
#include "python/bindings/tensor/torch_function.h"
#include "python/bindings/tensor/unchanged.h"

namespace tt::python {

PyObject* call_handlers(PyObject* module, const Entry& entry, const Op& op, const ParsedArgs& parsed,
                        const PythonCall& call, bool in_place) {
  if (PyObject* result = call_overridden(module, entry.name, call)) return result;
  if (!is_dispatched(call)) return nullptr;
  if (returns_input(op, parsed)) return given_input(call, parsed);
  Owned result(call_dispatched(op, parsed, call, in_place));
  return result ? named_results(entry, result.get()) : nullptr;
}

PyObject* call_slot_handlers(const char* name, const Op& op, PyObject* a, PyObject* b, bool in_place) {
  PyObject* args[] = {a, b};
  const PythonCall call{nullptr, args, b ? 2 : 1, nullptr};
  if (!b) {
    if (PyObject* result = call_overridden_method(name, {a})) return result;
  } else {
    const bool is_reflected = !is_tensor(a);
    try {
      PyObject* result = is_reflected ? call_overridden_method(name, {b, a}) : call_overridden_method(name, {a, b});
      if (result) return result;
    } catch (const PythonErrorSet&) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw;
      PyErr_Clear();
      Py_RETURN_NOTIMPLEMENTED;
    }
  }
  if (!is_dispatched(call)) return nullptr;
  ParsedArgs parsed;
  std::string why;
  return parse(op, call, &parsed, &why) ? call_dispatched(op, parsed, call, in_place) : nullptr;
}

}  // namespace tt::python
