// Reads tensor values. All functions wait for the engine.
#pragma once

#include <Python.h>

#include "client/session.h"
#include "engine/schema/scalar.h"

namespace tt::python {

// Returns the value of a one-element tensor. Throws Error (RuntimeError) for any other number of elements.
Scalar read_scalar(const client::Tensor& tensor);
// Returns all bytes in row-major order.
std::string read_bytes(const client::Tensor& tensor);
// These functions return new references.
PyObject* item(const client::Tensor& tensor);     // a Python number
PyObject* to_list(const client::Tensor& tensor);  // nested lists; a number for a zero-dim tensor

}  // namespace tt::python
