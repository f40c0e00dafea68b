// TensorObject: the Python Tensor type, written with the C API because a pybind11 call alone costs 200 ns.
//
// Everything here requires the GIL. No C++ exception propagates into Python: entry points use guard().
#pragma once

#include <Python.h>
#include <cxxabi.h>

#include <utility>
#include <vector>

#include "client/session/session.h"
#include "client/session/tensor.h"
#include "python/bindings/tensor/gil.h"

namespace tt::python {

struct TensorObject {
  PyObject_HEAD client::Tensor handle;
  PyObject* dict;  // the user's attributes; created on first use
  PyObject* weak_references;
  PyObject* grad;       // the object last returned for `.grad`, to preserve its identity
  PyObject* leaf;       // the first of the objects whose `grad` is this one, not owned; null: none
  PyObject* next_leaf;  // the next object with the same `grad`, not owned
};

extern PyTypeObject* tensor_type;
bool init_tensor_type(PyObject* module);

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyObject_TypeCheck(o, tensor_type); }
inline const client::Tensor& handle_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->handle; }
// The same for any object. Throws a TypeError that names the function if it is not a Tensor.
const client::Tensor& tensor_argument(PyObject* o, const char* function);

// Wraps a handle in a Python object of `type`, which is tensor_type or a subclass. New reference.
PyObject* wrap(client::Tensor handle, PyTypeObject* type = tensor_type);
// The Python object that has the handle, the last made of those that live; a new one if there is none. New reference.
PyObject* object_of(const client::Tensor& handle);
// Wraps the handles in a tuple. New reference.
PyObject* wrap_tuple(absl::Span<const client::Tensor> handles);

// Sets the Python exception for a C++ exception. Used by guard().
void set_python_error(const std::exception& e);

// Runs `body`. If it throws a C++ exception, sets the corresponding Python exception and returns `failed`.
template <typename F>
auto guard(F&& body, decltype(body()) failed = {}) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    set_python_error(e);
    return failed;
  } catch (const abi::__forced_unwind&) {  // Python code that `body` called was running when the interpreter ended
    sleep_until_exit();
  }
}

// Thrown if a Python exception is already set; guard() keeps that exception.
struct PythonErrorSet : std::exception {
  const char* what() const noexcept override { return "a Python exception is set"; }
};

// An owned reference to a Python object.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* p) : p_(p) {}
  Owned(Owned&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Owned() { Py_XDECREF(p_); }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// Keeps the handles that a call refers to by raw pointers (Args) alive while the call is parsed and issued. Python code
// that runs during the call (an __index__, another thread during a wait) may replace a tensor object's handle; the
// previous handle is freed when the last call in progress ends. The GIL guards the members.
class CallInProgress {
 public:
  CallInProgress() { ++count_; }
  ~CallInProgress() {
    if (--count_ == 0 && !replaced_.empty()) [[unlikely]]
      free_replaced_handles();
  }
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;

  static void keep(client::Tensor handle) {
    if (count_ > 0) replaced_.push_back(std::move(handle));
  }

 private:
  static void free_replaced_handles();
  static inline int count_ = 0;
  static inline std::vector<client::Tensor> replaced_;
};

// Drops the object last returned for `.grad`, which would keep the gradient's memory.
void forget_grad(PyObject* o);

// How often replace_handle() was called in this process.
uint64_t replaced_handles();

// Makes the Python object refer to another tensor: `x.data = y`, `x.unsqueeze_(0)`.
void replace_handle(PyObject* o, client::Tensor handle);

// Returns `p`; throws PythonErrorSet if it is null.
inline PyObject* throw_if_null(PyObject* p) {
  if (!p) throw PythonErrorSet();
  return p;
}

}  // namespace tt::python
