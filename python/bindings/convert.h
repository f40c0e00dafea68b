// Python data (numbers, nested sequences, buffers such as NumPy arrays) to tensors and back.
#pragma once

#include <Python.h>

#include <optional>

#include "client/session.h"

namespace tt::python {

// A tensor of the data's values; of its natural dtype where none is given (bool, int64, the
// default float, or a buffer's own). Throws Error (TypeError, ValueError) on data that is no
// rectangle of numbers.
client::Tensor tensor_from(PyObject* data, std::optional<DType> dtype, Device device, client::Session& session);

// Reads into a writable, contiguous buffer of exactly the tensor's bytes.
void read_into(const client::Tensor& tensor, PyObject* buffer);

// Whether it is a NumPy array, or says that it holds one.
bool is_array(PyObject* o);
// The dtype of an array or a NumPy scalar; none for other objects.
std::optional<DType> buffer_dtype(PyObject* o);

DType default_float();
void set_default_float(DType t);

}  // namespace tt::python
