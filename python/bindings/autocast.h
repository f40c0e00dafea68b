// The functions of teletensor._C for autocast, which teletensor.amp is made of.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_autocast(pybind11::module_& module);

}  // namespace tt::python
