// __torch_function__: lets the types of a call's arguments, or a function mode, replace a public function.
//
// A call takes the slow path of this file only if an argument is not exactly a Tensor or a Parameter, if an argument
// has no valid type, or if a function mode is active in any thread. All functions require the GIL.
#pragma once

#include <Python.h>

#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"

namespace tt::python {

// Types whose objects never override a function: Tensor and Parameter. Both are null while a function mode is active,
// so that calls with plain tensors take the slow path too.
extern PyTypeObject* plain_tensor_type;
extern PyTypeObject* plain_parameter_type;
extern int threads_with_function_modes;

inline bool is_plain_tensor(PyObject* o) {
  return Py_TYPE(o) == plain_tensor_type || Py_TYPE(o) == plain_parameter_type;
}

// Whether calls with an object of the type are passed to the type's __torch_function__ in this thread.
bool overrides_functions(PyTypeObject* type);

// Same, for an object that is not a tensor; returns fast for Python's numbers, strings, tuples and lists.
inline bool is_foreign(PyObject* o) {
  constexpr unsigned long kBuiltin = Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS |
                                     Py_TPFLAGS_UNICODE_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS;
  return !PyType_HasFeature(Py_TYPE(o), kBuiltin) && !PyFloat_CheckExact(o) && o != Py_None &&
         overrides_functions(Py_TYPE(o));
}

// The handlers of a call: the innermost function mode of this thread, then the arguments' types.
class Overrides {
 public:
  // Adds an argument, and the items of a list, tuple or slice.
  void add(PyObject* argument);
  void add(const PythonCall& call);
  void add_items(PyObject* tuple);

  bool found() const;  // whether there is a mode or an argument that handles the call

  // Calls the handlers in order, until one returns a result other than NotImplemented. `keywords` may be null; `name`
  // is the public name, for the error message. Returns a new reference. Throws PythonErrorSet.
  PyObject* call(PyObject* function, PyObject* args, PyObject* keywords, const std::string& name) const;
  // The message of PyTorch's Python functions instead of that of its C++ functions.
  Overrides& python_message() { return is_python_ = true, *this; }

 private:
  [[noreturn]] void refuse(PyObject* mode, const std::string& name) const;

  absl::InlinedVector<PyObject*, 4> objects_;  // borrowed; one for each type, subclasses first
  bool is_python_ = false;
};

// The arguments of a call as a tuple and a dictionary, which is null without keywords.
struct PackedCall {
  explicit PackedCall(const PythonCall& call);
  Owned args, keywords;
};

// Passes a call of the generated function or method `name` to the handlers. `module` contains the function; null for a
// method, and for a function of _C.ops, which nothing overrides. Returns null without an exception if nothing overrides
// the call. Throws PythonErrorSet.
PyObject* call_overridden(PyObject* module, const char* name, const PythonCall& call);

// Same, for the attribute Tensor.<name> called with these arguments. `kind` is "" for a method, "__get__" or "__set__"
// for a property.
PyObject* call_overridden_method(const char* name, std::initializer_list<PyObject*> args, const char* kind = "",
                                 PyObject* keywords = nullptr);

// The number of this thread's active dispatch modes (torch_dispatch.h).
size_t dispatch_mode_count();

// Adds the functions and types that teletensor.overrides uses.
bool init_torch_function(PyObject* module);

}  // namespace tt::python
