// Converts an operator's Args to Python objects, for Python code that handles operator calls.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>

#include "engine/schema/op.h"

namespace tt::python {

// Returns the Python object of a tensor argument, which may be null (None).
using TensorObjects = std::function<pybind11::object(const TensorMeta*)>;

// Returns a new object that shares the tensor's handle; None for null.
pybind11::object tensor_object(const TensorMeta* tensor);

// Returns the argument as a Python object. Requires the GIL. Throws.
pybind11::object to_python(const Param& param, const Arg& arg, const TensorObjects& tensor = tensor_object);

}  // namespace tt::python
