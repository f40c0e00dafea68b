// The Python types dtype, device and Size.
#pragma once

#include <Python.h>

#include "engine/schema/meta.h"

namespace tt::python {

// Adds the types and the dtype singletons ("float32", ...) to the module.
bool init_types(PyObject* module);
PyObject* size_object(SizesView sizes);  // new: teletensor.Size, a tuple
bool is_size(PyObject* o);
PyObject* device_object(Device device);  // new

// The device of new tensors without an explicit device: initially the CPU.
Device default_device();
// Sets the default device (a device or None) and returns the previous one; new. Throws Error (TypeError).
PyObject* swap_default_device(PyObject* device);
// Sets the GPU of "cuda" without a number and returns the previous one. Throws Error for an invalid number.
int swap_current_gpu(int index);

}  // namespace tt::python
