// The handlers of a call with arguments that are not plain tensors, called in one place and in PyTorch's order:
//
//   1. function modes and the arguments' __torch_function__ (torch_function.h), which receive the public function;
//   2. dispatch modes and the arguments' __torch_dispatch__ (torch_dispatch.h), which receive PyTorch's operator.
//
// DTensor is a subclass with __torch_dispatch__. C++ code that computes a method by operators, such as indexing, passes
// each of them to the handlers by DispatchedMethod.
//
// The functions return null without an exception if nothing handles the call. They require the GIL and throw
// PythonErrorSet.
#pragma once

#include <Python.h>

#include "engine/schema/op.h"
#include "python/bindings/tensor/operators.h"
#include "python/bindings/tensor/parse.h"

namespace tt::python {

// A call of a generated function or method, of which `op` is the overload that accepts the arguments. `module` as in
// call_overridden().
PyObject* call_handlers(PyObject* module, const Entry& entry, const Op& op, const ParsedArgs& parsed,
                        const PythonCall& call, bool in_place);

// A number slot, which is equivalent to the method `name` of its first tensor. `b` is null for a slot with one operand.
// Returns NotImplemented in place of a TypeError of a slot with two operands, so that Python tries the other one's
// method.
PyObject* call_slot_handlers(const char* name, const Op& op, PyObject* a, PyObject* b, bool in_place);

}  // namespace tt::python
