// Binding of symbolic::Facts (engine/symbolic/facts.h): the sizes of a recorded function's arguments, as symbols.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_size_facts(pybind11::module_& m);

}  // namespace tt::python
