// The one argument parser: Python arguments to Args, by an operator's parameter table.
//
// Args borrow from the Python objects and from the ParsedArgs; both live until the call is made.
#pragma once

#include <Python.h>

#include <deque>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "client/session.h"
#include "engine/schema/op.h"
#include "python/bindings/object.h"

namespace tt::python {

struct ParsedArgs {
  absl::InlinedVector<Arg, 8> args;
  // Results are written to these: `out=`, or the tensor of an in-place method.
  client::Tensors into;
  bool requires_grad = false;          // of creation functions
  client::Session* session = nullptr;  // of the first tensor; null where there is none

  // Backing of list arguments; deques never move what they hold.
  std::deque<absl::InlinedVector<int64_t, 6>> ints;
  std::deque<absl::InlinedVector<double, 4>> floats;
  std::deque<std::vector<const TensorMeta*>> lists;
  absl::InlinedVector<Owned, 1> owners;  // of the tensors in `lists`: the caller's list may change meanwhile
};

// A call as Python's vectorcall protocol gives it; `self` (may be null) comes before `args`.
struct PythonCall {
  PyObject* self;
  PyObject* const* args;
  Py_ssize_t count;    // positional ones
  PyObject* keywords;  // tuple of names, or null; their values follow the positional ones
};

// Fills `out`; false with a reason in `why` (no Python exception set) where the call does not fit
// the operator's parameters; `strict`: no tensor stands for a number, no int for a bool. Throws PythonErrorSet where
// Python code called on the way failed.
bool parse(const Op& op, const PythonCall& call, ParsedArgs* out, std::string* why, bool strict = false);

// A number of Python's or NumPy's; false where it is none. Throws on one beyond 64 bits.
bool plain_number(PyObject* o, Arg* out);
// The value of a Python int above int64's largest. Throws Error (RuntimeError) beyond 64 bits.
uint64_t beyond_int(PyObject* o);
// A dtype or device from its Python object; throw Error (TypeError).
DType dtype_from(PyObject* o);
Device device_from(PyObject* o);
bool is_dtype(PyObject* o);
PyObject* dtype_object(DType t);  // borrowed

// A sequence of ints (tuple, list, Size) or, where allowed, one int.
bool ints_from(PyObject* o, absl::InlinedVector<int64_t, 6>* out);
// An int or what has __index__. Throws PythonErrorSet (TypeError), Error (RuntimeError) beyond 64 bits.
int64_t int_from(PyObject* o);

}  // namespace tt::python
