// DTensor: a Python tensor that represents tensors of several ranks. A Python function computes its operators.
//
// Its handle has the metadata of the whole tensor and a stand-in, the shards; no engine knows it. The stand-in passes
// operators to the registered Python function. All functions require the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include "client/session/session.h"

namespace tt::python {

// The Python type of DTensors; null before it is registered.
extern PyTypeObject* dtensor_type;

bool is_dtensor(const client::Tensor& handle);

void bind_dtensor(pybind11::module_& m);

}  // namespace tt::python
