// Admin: the engine's administration interface for the command line (teletensor status, top, ...).
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_admin(pybind11::module_& m);

}  // namespace tt::python
