// __torch_dispatch__: passes operator calls to dispatch modes and to tensors of subclasses that handle them.
//
// Runs below __torch_function__ and above autocast and the recording of gradients, which the engine does. A wrapper
// subclass's tensor has sizes, a dtype and a device, but no values in the engine; a DTensor is one. All functions
// require the GIL.
#pragma once

#include <Python.h>

#include <initializer_list>
#include <string_view>
#include <vector>

#include "engine/schema/op.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"

namespace tt::python {

// Whether a call with these objects, or items of lists and tuples, is passed to a handler in this thread.
bool is_dispatched(const PythonCall& call);

// Passes the call to the handlers. Returns the result, or null without an exception if no handler applies.
// Throws PythonErrorSet.
PyObject* call_dispatched(const Op& op, const ParsedArgs& parsed, const PythonCall& call, bool in_place);

// The operators by which C++ code computes a method, such as indexing, of objects that handlers apply to.
//
// Handlers receive the method's arguments, which must outlive this object, and the objects that they returned for
// earlier operators. Used by one thread.
class DispatchedMethod {
 public:
  explicit DispatchedMethod(std::initializer_list<PyObject*> arguments) : arguments_(arguments) {}

  // Computes an operator with one result, or that writes to `into`; through the handlers if they apply to its tensors.
  // Throws.
  client::Tensor call(uint16_t id, Args args, client::Session& session, absl::Span<const client::Tensor> into = {});
  // Returns the object of a result or an argument; a new reference.
  PyObject* object_of(const client::Tensor& tensor) const;

 private:
  PyObject* find(const TensorMeta* tensor) const;  // borrowed; null if none is known

  std::vector<PyObject*> arguments_;  // borrowed
  std::vector<Owned> results_;
};

// Whether the handle belongs to a wrapper subclass's tensor. `tensor` may be null.
bool is_wrapper(const TensorMeta* tensor);
// Returns the object of a wrapper subclass's tensor, a new reference; null for other tensors, and if it was freed.
PyObject* wrapper_object(const client::Tensor& tensor);
// Throws Error (NotImplementedError) if the tensor is a wrapper, which has no values to read. `what` names the caller.
void check_has_values(const TensorMeta* tensor, std::string_view what);

// Adds the functions that teletensor.utils._python_dispatch and Tensor use.
bool init_torch_dispatch(PyObject* module);

}  // namespace tt::python
