// Differentiation as Python asks for it: backward, grad, hooks, and functions of the user's own.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_autograd(pybind11::module_& m);

}  // namespace tt::python
