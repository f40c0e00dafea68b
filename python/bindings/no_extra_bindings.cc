#include "python/bindings/connection.h"

namespace tt::python {

void bind_extra(pybind11::module_&) {}

}  // namespace tt::python
