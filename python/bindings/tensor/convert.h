// Converts Python data (numbers, nested sequences, buffers such as NumPy arrays) to tensors and back.
#pragma once

#include <Python.h>

#include <optional>

#include "client/session/session.h"

namespace tt::python {

// Creates a tensor from data. Without `dtype`, the data determines the dtype: bool, int64, the default floating-point
// or complex dtype, or the dtype of a buffer. Throws Error (TypeError, ValueError) unless the data is rectangular and
// numeric.
client::Tensor tensor_from(PyObject* data, std::optional<DType> dtype, Device device, client::Session& session);

// Reads into a writable, contiguous buffer of exactly the tensor's size in bytes.
void read_into(const client::Tensor& tensor, PyObject* buffer);

// Whether the object is a NumPy array or exposes __array_interface__.
bool is_array(PyObject* o);
// Returns the dtype of an array or a NumPy scalar; nullopt for other objects.
std::optional<DType> buffer_dtype(PyObject* o);

}  // namespace tt::python
