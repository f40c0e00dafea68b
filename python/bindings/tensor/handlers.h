// The handlers of a call with arguments that are not plain tensors, asked in one place and in PyTorch's order:
//
//   1. function modes and the arguments' __torch_function__ (torch_function.h), which receive the public function;
//   2. dispatch modes and the arguments' __torch_dispatch__ (torch_dispatch.h), which receive PyTorch's operator;
//   3. the stand-ins of tensors without values, such as DTensors (stand_in.h), which call_op() asks, because they also
//      compute the operators that bindings call.
//
// The functions return null without an exception if nothing handles the call. They require the GIL and throw
// PythonErrorSet.
#pragma once

#include <Python.h>

#include <initializer_list>

#include "engine/schema/op.h"
#include "python/bindings/tensor/parse.h"

namespace tt::python {

// A call of the generated function or method `name`, of which `op` is the overload that accepts the arguments. `module` as
// in call_overridden().
PyObject* call_handlers(PyObject* module, const char* name, const Op& op, const ParsedArgs& parsed,
                        const PythonCall& call, bool in_place);

// A number slot, which is equivalent to the method `name` of its first tensor. `b` is null for a slot with one operand.
// Returns NotImplemented in place of a TypeError of a slot with two operands, so that Python tries the other one's method.
PyObject* call_slot_handlers(const char* name, const Op& op, PyObject* a, PyObject* b, bool in_place);

// The attribute Tensor.<name> called with these arguments. `dispatched` is the function of teletensor._library.dispatch
// that computes it by operators.
PyObject* call_method_handlers(const char* name, const char* dispatched, std::initializer_list<PyObject*> args);

}  // namespace tt::python
