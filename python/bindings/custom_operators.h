// Bindings of client/session/custom_operators.h: the operators of libraries of the engine.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_custom_operators(pybind11::module_& m);

}  // namespace tt::python
