// The Python types dtype, device and Size.
#pragma once

#include <Python.h>

#include <optional>
#include <string>

#include "engine/schema/meta.h"

namespace tt::python {

// Adds the types and the dtype singletons ("float32", ...) to the module.
bool init_types(PyObject* module);
PyObject* size_object(SizesView sizes);  // new reference to a teletensor.Size, a tuple
bool is_size(PyObject* o);
PyObject* size_class();                  // borrowed reference to Size
PyObject* device_object(Device device);  // new reference

// Returns the default device, or nothing if none is set.
std::optional<Device> chosen_device();
// Returns the device of new tensors without an explicit device: the default device if one is set, otherwise that of the
// default tensor type.
Device default_device();
// Sets the default device (a device or None) and returns a new reference to the previous one. Throws Error (TypeError).
PyObject* swap_default_device(PyObject* device);
// Returns the device of the default tensor type: initially the CPU. Tensor(2, 3) and Tensor(data) create tensors on it,
// whatever the default device is.
Device tensor_type_device();
// Sets the device of the default tensor type, as swap_default_device() does; None selects the CPU.
PyObject* swap_tensor_type_device(PyObject* device);
// Sets the index of the GPU that "cuda" without a number means, and returns the previous index. Throws Error for an
// invalid number.
int swap_current_gpu(int index);
// The same for the type of a device library, given by its name. Throws Error.
int swap_current_plugin(const std::string& type, int index);

}  // namespace tt::python
