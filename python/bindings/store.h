// RemoteStore: the client of the store through which the ranks of process groups rendezvous (distributed/store).
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_store(pybind11::module_& m);

}  // namespace tt::python
