// dtype, device and Size as Python sees them.
#pragma once

#include <Python.h>

#include "engine/rules/meta.h"

namespace tt::python {

// Adds the types and the dtype singletons ("float32", ...) to the module.
bool init_types(PyObject* module);
PyObject* size_object(SizesView sizes);   // new: teletensor.Size, a tuple
PyObject* device_object(Device device);   // new

}  // namespace tt::python
