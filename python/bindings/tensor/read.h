// Reads tensor values. All functions wait for the engine, except those of pending values as stated.
#pragma once

#include <Python.h>

#include <memory>

#include "client/session/session.h"
#include "engine/schema/scalar.h"

namespace tt::python {

// Returns the value of a one-element tensor. Throws Error (RuntimeError) for any other number of elements.
Scalar read_scalar(const client::Tensor& tensor);
// Returns all bytes in row-major order.
std::string read_bytes(const client::Tensor& tensor);
// A value that was requested and may not have arrived.
class PendingRead {
 public:
  explicit PendingRead(const client::Tensor& tensor);
  bool done() const;
  // Waits; returns the value's row-major bytes.
  absl::Span<char> wait_for_bytes() const;
  // The bytes that wait_for_bytes() returned last; empty before. Never throws.
  absl::Span<char> received() const { return received_; }
  const TensorMeta& meta() const { return meta_; }

 private:
  TensorMeta meta_;
  Ref<client::Session> session_;
  std::unique_ptr<client::PendingValue> pending_;
  mutable absl::Span<char> received_;
};

// The result of Tensor.tolist_async().
class PendingList : public PendingRead {
 public:
  using PendingRead::PendingRead;
  PyObject* wait() const;  // waits; a new reference to nested lists
};

// Creates the type PendingItem, whose objects item_async() returns. Returns false with a Python exception set.
bool init_pending_item_type(PyObject* module);

// These functions return new references.
PyObject* item(const client::Tensor& tensor);           // a Python number
PyObject* item_async(const client::Tensor& tensor);     // a PendingItem; does not wait
PyObject* to_list_async(const client::Tensor& tensor);  // a PendingList; does not wait
PyObject* to_list(const client::Tensor& tensor);        // nested lists; a number for a zero-dim tensor

}  // namespace tt::python
