// Bindings of client/session/program.h: ProgramTrace and Program.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_program(pybind11::module_& m);

}  // namespace tt::python
