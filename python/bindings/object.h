// TensorObject: the Python Tensor, a C-API type, since pybind11's call alone costs 200 ns.
//
// Everything here runs with the GIL held. No C++ exception crosses into Python: entry points go
// through guard().
#pragma once

#include <Python.h>

#include <utility>
#include <vector>

#include "client/session.h"
#include "client/tensor.h"

namespace tt::python {

struct TensorObject {
  PyObject_HEAD client::Tensor handle;
  PyObject* dict;  // attributes of the user's; made when first needed
  PyObject* weak_references;
  PyObject* grad;  // the object last given out for `.grad`, so that it keeps its identity
};

extern PyTypeObject* tensor_type;
bool init_tensor_type(PyObject* module);

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyObject_TypeCheck(o, tensor_type); }
inline const client::Tensor& handle_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->handle; }

// New reference. `type` is tensor_type or a subclass.
PyObject* wrap(client::Tensor handle, PyTypeObject* type = tensor_type);
// A tuple of them.
PyObject* wrap_tuple(absl::Span<const client::Tensor> handles);

// Sets the Python exception that a C++ one stands for. For guard().
void set_python_error(const std::exception& e);

// Runs `body`; a C++ exception becomes a Python one and `failed` is returned.
template <typename F>
auto guard(F&& body, decltype(body()) failed = {}) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    set_python_error(e);
    return failed;
  }
}

// Thrown where a Python exception is set already; guard() lets it stand.
struct PythonErrorSet : std::exception {
  const char* what() const noexcept override { return "a Python exception is set"; }
};

// An owned reference.
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

// Other Python threads run while this one waits.
class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ~ReleaseGil() { PyEval_RestoreThread(state_); }
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

// Keeps the handles that a call refers to by bare pointers (Args) alive while it is parsed and made. Python code that
// runs meanwhile (an __index__, another thread during a wait) may give a tensor object another handle; the one before
// is freed when the last call in progress ends. The GIL guards its members.
class CallInProgress {
 public:
  CallInProgress() { ++count_; }
  ~CallInProgress() {
    if (--count_ == 0 && !replaced_.empty()) [[unlikely]]
      free_replaced();
  }
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;

  static void keep(client::Tensor handle) {
    if (count_ > 0) replaced_.push_back(std::move(handle));
  }

 private:
  static void free_replaced();
  static inline int count_ = 0;
  static inline std::vector<client::Tensor> replaced_;
};

// The Python object goes on as another tensor: `x.data = y`, `x.unsqueeze_(0)`.
void replace_handle(PyObject* o, client::Tensor handle);

// `p` if it is an object, else throws PythonErrorSet.
inline PyObject* must(PyObject* p) {
  if (!p) throw PythonErrorSet();
  return p;
}

}  // namespace tt::python
