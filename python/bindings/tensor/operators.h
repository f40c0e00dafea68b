// Operators as Python functions and methods: generated entries with one common calling path.
#pragma once

#include <Python.h>

#include "client/session/session.h"
#include "engine/schema/op.h"
#include "python/bindings/tensor/parse.h"

namespace tt::python {

// A Python name and its candidate operators, in the order in which they are tried.
struct Entry {
  const char* name;
  absl::Span<const uint16_t> ops;
  absl::Span<const char* const> results;  // field names of the result's named tuple; empty: a plain tuple
};

// Generated (engine/codegen/python_bindings.py).
extern const Entry kEntries[];
struct ModuleTable {
  const char* name;
  PyMethodDef* functions;
};
struct MethodTables {
  PyMethodDef* torch;                     // teletensor.<name>
  PyMethodDef* functional;                // teletensor.nn.functional.<name>
  PyMethodDef* methods;                   // Tensor.<name>, Tensor.<name>_
  PyMethodDef* all;                       // teletensor._C.ops.<name>
  absl::Span<const ModuleTable> modules;  // teletensor.<module>.<name>: linalg, special, fft
};
MethodTables method_tables();

// Calls the entry's first operator that accepts the arguments, unless an argument or a function mode overrides the
// function (torch_function.h). If `in_place`, writes the result to `self` and returns `self`. `module` contains the
// function; null for methods. Returns a new reference, or null with a Python exception set.
PyObject* call_entry(const Entry& entry, PyObject* module, const PythonCall& call, bool in_place) noexcept;

// Returns a tuple of an entry's results as PyTorch's named tuple, if the entry has one; else `results`. A new
// reference.
PyObject* named_results(const Entry& entry, PyObject* results);

// Sets the Python function that call_entry calls if no operator accepts the arguments, with the entry's name, whether
// it is a method, whether it is in place, the positional arguments (with `self`) and the keywords. Its result is
// returned, unless it is NotImplemented.
void set_other_spellings(PyObject* function);

// Sets whether tensors that empty, empty_like and new_empty create are filled: with NaN, or the dtype's largest number.
void set_fills_new(bool enabled);

// Calls an operator with the calling thread's modes, for number slots and other C++ code. Throws.
client::Tensors call_op(uint16_t op, Args args, client::Session& session, absl::Span<const client::Tensor> into = {});

template <int Index>
PyObject* function(PyObject* module, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return call_entry(kEntries[Index], module, {nullptr, args, n, keywords}, false);
}
// A function of _C.ops, which nothing overrides.
template <int Index>
PyObject* internal_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return call_entry(kEntries[Index], nullptr, {nullptr, args, n, keywords}, false);
}
template <int Index>
PyObject* method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return call_entry(kEntries[Index], nullptr, {self, args, n, keywords}, false);
}
template <int Index>
PyObject* method_in_place(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return call_entry(kEntries[Index], nullptr, {self, args, n, keywords}, true);
}

extern PyNumberMethods tensor_as_number;
PyObject* tensor_compare(PyObject* a, PyObject* b, int what);

}  // namespace tt::python
