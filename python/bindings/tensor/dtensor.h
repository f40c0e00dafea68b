// DTensor: a Python tensor that represents tensors of several ranks. A Python function computes its operators.
//
// Its handle has the metadata of the whole tensor and a Shards object; no engine knows it. An operator call with such a
// handle, in any argument or out tensor, is passed to the registered Python function instead of an engine. All
// functions require the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include "client/session/session.h"
#include "engine/schema/op.h"

namespace tt::python {

// The Python type of DTensors; null before it is registered.
extern PyTypeObject* dtensor_type;
// Whether there may be handles that represent other tensors: DTensors, or tensors of wrapper subclasses.
extern bool handles_without_values;

bool is_dtensor(const client::Tensor& handle);

// Returns the results of a call with DTensors; nullopt if it has none. Throws.
std::optional<client::Tensors> call_with_dtensors(const Op& op, Args args, absl::Span<const client::Tensor> into);

void bind_dtensor(pybind11::module_& m);

}  // namespace tt::python
