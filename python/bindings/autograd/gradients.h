// Conversions between Python's tensors and the client's, for the bindings of autograd. The caller holds the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "client/autograd/backward.h"

namespace tt::python {

using Handles = std::vector<client::Tensor>;

// Returns the handle of a Tensor. Throws Error (TypeError) for other objects; `what` names the argument.
client::Tensor tensor_of(pybind11::handle o, const char* what);
// Returns the handles of a sequence of Tensors. None becomes a null handle.
Handles gradients_of(pybind11::handle list);
pybind11::list to_python(const Handles& handles);
// Takes ownership of a result of Python's C functions; throws if it is null.
pybind11::object steal(PyObject* o);
// Returns the number of the user's line.
uint32_t site_of(const client::Tensor& tensor);
// Takes ownership of a Python object that may be released on any thread.
std::shared_ptr<PyObject> share(PyObject* owned);
// Wraps a Python callable (gradients, create_graph) -> gradients for a backward pass.
client::BackwardFunction backward_function(pybind11::object callable);

}  // namespace tt::python
