#include "python/bindings/autograd/gradients.h"

#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/operators.h"
#include "python/bindings/tensor/torch_dispatch.h"

namespace py = pybind11;

namespace tt::python {

client::Tensor tensor_of(py::handle o, const char* what) {
  check(ErrorKind::kType, is_tensor(o.ptr()), what, " must be a Tensor, not ", Py_TYPE(o.ptr())->tp_name);
  check_has_values(handle_of(o.ptr()).get(), what);
  return handle_of(o.ptr());
}

Handles gradients_of(py::handle list) {
  Handles result;
  for (py::handle o : list) result.push_back(o.is_none() ? client::Tensor() : tensor_of(o, "a gradient"));
  return result;
}

py::object steal(PyObject* o) { return py::reinterpret_steal<py::object>(throw_if_null(o)); }

py::list to_python(const Handles& handles) {
  py::list list;
  for (const client::Tensor& t : handles) list.append(t ? steal(wrap(t)) : py::none());
  return list;
}

uint32_t site_of(const client::Tensor& tensor) { return current_site(*tensor->session); }

std::shared_ptr<PyObject> share(PyObject* owned) {
  return std::shared_ptr<PyObject>(owned, [](PyObject* o) {
    if (!Py_IsInitialized()) return;
    HoldGil held;
    Py_DECREF(o);
  });
}

client::BackwardFunction backward_function(py::object callable) {
  // The graph may be freed on any thread.
  const std::shared_ptr<PyObject> held = share(callable.release().ptr());
  return [held](Handles gradients, bool create_graph) {
    PyObject* result =
        PyObject_CallFunction(held.get(), "OO", to_python(gradients).ptr(), create_graph ? Py_True : Py_False);
    if (!result) throw PythonErrorSet();
    return gradients_of(steal(result));
  };
}

}  // namespace tt::python
