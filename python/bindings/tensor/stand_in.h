// Stand-ins: what tensors without values in an engine stand for, as `Handle::stands_for`.
//
// A DTensor stands for the tensors of several ranks (dtensor.h), a tensor of a wrapper subclass for its Python object
// (torch_dispatch.h). An operator with such a tensor is passed to the stand-in instead of an engine. All functions require
// the GIL.
#pragma once

#include <Python.h>

#include <optional>
#include <string_view>

#include "client/session/session.h"
#include "engine/schema/op.h"

namespace tt::python {

class StandIn : public RefCounted {
 public:
  // Returns the results of an operator with the tensor among its arguments or out tensors. Throws.
  virtual client::Tensors call(const Op& op, Args args, absl::Span<const client::Tensor> into) = 0;
  // Throws Error (NotImplementedError) if `what`, an access to values, has none to read.
  virtual void check_has_values(std::string_view what) const = 0;
  // Returns a new reference to the tensor's object; null if it has none yet or no more.
  virtual PyObject* object() const = 0;
  // The type of new objects of the tensor.
  virtual PyTypeObject* type() const = 0;
};

// Whether there may be tensors with stand-ins.
extern bool stand_ins_exist;

// The stand-in of a tensor; null if it has none. `tensor` may be null.
StandIn* stand_in_of(const TensorMeta* tensor);

// Returns the results of a call with a stand-in among the arguments or out tensors; nullopt if there is none. Throws.
std::optional<client::Tensors> call_stand_in(const Op& op, Args args, absl::Span<const client::Tensor> into);

// Throws Error (NotImplementedError) if the tensor has no values to read. `what` names the caller.
void check_has_values(const TensorMeta* tensor, std::string_view what);

}  // namespace tt::python
