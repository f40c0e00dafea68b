// Bindings of client/published.h: publish, open_published, unpublish, list_published, is_read_only, mark_read_only.
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_published(pybind11::module_& m);

}  // namespace tt::python
