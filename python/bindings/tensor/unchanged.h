// Calls that return their first argument itself, as PyTorch's do, because there is nothing to rearrange: contiguous()
// of a contiguous tensor, flatten() of one dimension, real() of a real tensor. Dispatch modes and __torch_dispatch__ do
// not see them. The functions require the GIL.
#pragma once

#include <Python.h>

#include "engine/schema/op.h"
#include "python/bindings/tensor/parse.h"

namespace tt::python {

// Whether the call is one of these. A trace requires the contiguity that this depends on; the number of dimensions and
// the dtype belong to every trace.
bool returns_input(const Op& op, const ParsedArgs& parsed);

// The handle of the first argument, a tensor.
client::Tensor first_tensor(const ParsedArgs& parsed);
// Its object. New reference.
PyObject* given_input(const PythonCall& call, const ParsedArgs& parsed);

}  // namespace tt::python
