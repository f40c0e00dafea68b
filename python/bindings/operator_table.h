// The operator table for programs that speak the wire protocol without the client library.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_operator_table(pybind11::module_& m);

}  // namespace tt::python
