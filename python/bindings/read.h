// Reads tensor values. All functions wait for the engine; methods of PendingItem and item_async as documented below.
#pragma once

#include <Python.h>

#include <memory>

#include "client/session.h"
#include "engine/schema/scalar.h"

namespace tt::python {

// Returns the value of a one-element tensor. Throws Error (RuntimeError) for any other number of elements.
Scalar read_scalar(const client::Tensor& tensor);
// Returns all bytes in row-major order.
std::string read_bytes(const client::Tensor& tensor);
// A number that was requested and may not have arrived: the result of Tensor.item_async().
class PendingItem {
 public:
  // Requirements of read_scalar().
  explicit PendingItem(const client::Tensor& tensor);
  bool done() const;
  PyObject* wait() const;  // waits; a new reference to a Python number

 private:
  DType dtype_;
  Ref<client::Session> session_;
  std::unique_ptr<client::PendingValue> pending_;
};

// These functions return new references.
PyObject* item(const client::Tensor& tensor);        // a Python number
PyObject* item_async(const client::Tensor& tensor);  // a PendingItem; does not wait
PyObject* to_list(const client::Tensor& tensor);     // nested lists; a number for a zero-dim tensor

}  // namespace tt::python
