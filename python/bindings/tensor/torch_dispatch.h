// __torch_dispatch__: passes operator calls to dispatch modes and to tensors of subclasses that handle them.
//
// Runs below __torch_function__ and above autocast and the recording of gradients, which the engine does. A wrapper
// subclass's tensor has sizes, a dtype and a device, but no values in the engine. All functions require the GIL.
#pragma once

#include <Python.h>

#include "engine/schema/op.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"

namespace tt::python {

// Whether a call with these objects, or items of lists and tuples, is passed to a handler in this thread.
bool is_dispatched(const PythonCall& call);

// Passes the call to the handlers. Returns the result, or null without an exception if no handler applies.
// Throws PythonErrorSet.
PyObject* call_dispatched(const Op& op, const ParsedArgs& parsed, const PythonCall& call, bool in_place);

// Same, for a method of this name of the registered Python handler: get_item, set_item.
PyObject* call_dispatched_method(const char* name, std::initializer_list<PyObject*> args);

// Whether the handle belongs to a wrapper subclass's tensor. `tensor` may be null.
bool is_wrapper(const TensorMeta* tensor);

// Adds the functions that teletensor.utils._python_dispatch and Tensor use.
bool init_torch_dispatch(PyObject* module);

}  // namespace tt::python
