// Values out of tensors: these wait for the engine.
#pragma once

#include <Python.h>

#include "client/session.h"
#include "engine/schema/scalar.h"

namespace tt::python {

// The one element. Throws Error (RuntimeError) where there are more or fewer.
Scalar read_scalar(const client::Tensor& tensor);
// All row-major bytes.
std::string read_bytes(const client::Tensor& tensor);
// New references.
PyObject* item(const client::Tensor& tensor);     // a Python number
PyObject* to_list(const client::Tensor& tensor);  // nested lists, or a number where zero-dim

}  // namespace tt::python
