// Bindings for served models: files (model_bytes, model_json) and calls (client/inference.h).
#pragma once

#include <pybind11/pybind11.h>

namespace tt::python {

void bind_serving(pybind11::module_& m);

}  // namespace tt::python
