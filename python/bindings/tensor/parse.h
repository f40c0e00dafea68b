// The argument parser: converts Python arguments to Args by an operator's parameter table.
//
// Args borrow from the Python objects and from the ParsedArgs; both must outlive the call.
#pragma once

#include <Python.h>

#include <list>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "client/session/session.h"
#include "engine/schema/op.h"
#include "python/bindings/tensor/memory_format.h"
#include "python/bindings/tensor/object.h"

namespace tt::python {

struct ParsedArgs {
  absl::InlinedVector<Arg, 8> args;
  // The tensors that receive the results: `out=`, or the tensor of an in-place method.
  client::Tensors into;
  bool requires_grad = false;                        // `requires_grad=` of functions that create tensors
  MemoryFormat memory_format = MemoryFormat::kNone;  // `memory_format=` of functions that create or copy tensors
  // Session of the first tensor. Null without tensors, and if a tensor is not exactly a Tensor or a Parameter: then the
  // call may be overridden (torch_function.h), and `overridable_session` is the session of the first tensor.
  client::Session* session = nullptr;
  client::Session* overridable_session = nullptr;
  client::Session* any_session() const { return overridable_session ? overridable_session : session; }

  // Storage of list arguments. Lists never move their elements, and allocate nothing while they are empty, unlike
  // deques.
  std::list<absl::InlinedVector<int64_t, 6>> ints;
  std::list<absl::InlinedVector<double, 4>> floats;
  std::list<std::vector<const TensorMeta*>> lists;
  absl::InlinedVector<Owned, 1> owners;  // keep the tensors in `lists` alive: the caller's list may change
};

// A call by Python's vectorcall protocol; `self` (may be null) precedes `args`.
struct PythonCall {
  PyObject* self;
  PyObject* const* args;
  Py_ssize_t count;    // positional arguments
  PyObject* keywords;  // tuple of names, or null; their values follow the positional arguments
};

// Fills `out`. Returns false with a reason in `why` (no Python exception set) if the call does not match the operator's
// parameters. If `strict`, rejects a tensor for a number and an int for a bool. Throws PythonErrorSet if Python code
// called by a conversion fails.
bool parse(const Op& op, const PythonCall& call, ParsedArgs* out, std::string* why, bool strict = false);

// Converts a Python or NumPy number; returns false for other objects. Throws PythonErrorSet (OverflowError) for
// integers beyond 64 bits.
bool plain_number(PyObject* o, Arg* out);
// The value of a tensor of one element, read from the engine; of a wrapper subclass by its item().
Scalar tensor_number(PyObject* o);
// Throws the Error (ValueError) for an integer where 64 bits with a sign are expected.
[[noreturn]] void fail_beyond_64_bits();
// Convert a Python object to a dtype or device; throw Error (TypeError).
DType dtype_from(PyObject* o);
Device device_from(PyObject* o);
bool is_dtype(PyObject* o);
PyObject* dtype_object(DType t);  // borrowed reference

// Converts a sequence of ints (tuple, list, Size). `for_call`: for the arguments of a call, of which a SymInt is a mark
// and a recorded size an int (symbolic_int.h).
bool ints_from(PyObject* o, absl::InlinedVector<int64_t, 6>* out, bool for_call = false);
// An int, a recorded size, or the mark of a SymInt. Throws like int_from().
int64_t argument_int(PyObject* o);
// Like plain_number(), but also a recorded size, or the mark of a SymInt.
bool argument_number(PyObject* o, Arg* out);
// Converts an int or an object with __index__. Throws PythonErrorSet (TypeError) for other objects, Error
// (ValueError) for values beyond 64 bits.
int64_t int_from(PyObject* o);

}  // namespace tt::python
