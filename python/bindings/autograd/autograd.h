// Python bindings for differentiation: backward, grad, hooks, and user-defined functions.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_autograd(pybind11::module_& m);

}  // namespace tt::python
