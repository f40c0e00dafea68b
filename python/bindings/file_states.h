// Binding of FileStates: whether files have changed.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_file_states(pybind11::module_& m);

}  // namespace tt::python
