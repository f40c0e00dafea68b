// dtype, device and Size as Python sees them.
#pragma once

#include <Python.h>

#include "engine/schema/meta.h"

namespace tt::python {

// Adds the types and the dtype singletons ("float32", ...) to the module.
bool init_types(PyObject* module);
PyObject* size_object(SizesView sizes);  // new: teletensor.Size, a tuple
bool is_size(PyObject* o);
PyObject* device_object(Device device);  // new

// Where tensors are made that nothing else says a device for: the CPU, until it is set.
Device default_device();
// Takes a device or None, gives what there was; new. Throws Error (TypeError).
PyObject* swap_default_device(PyObject* device);
// Which GPU "cuda" without a number means; gives the one before. Throws Error on a number that none can have.
int swap_current_gpu(int index);

}  // namespace tt::python
