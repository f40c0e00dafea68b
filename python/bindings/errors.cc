#include "python/bindings/errors.h"

#include <new>

#include "client/interruption.h"
#include "client/session.h"
#include "python/bindings/object.h"

namespace tt::python {
namespace {

PyObject* out_of_memory_error = nullptr;
PyObject* linalg_error = nullptr;

PyObject* exception_type(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRuntime: return PyExc_RuntimeError;
    case ErrorKind::kIndex: return PyExc_IndexError;
    case ErrorKind::kType: return PyExc_TypeError;
    case ErrorKind::kValue: return PyExc_ValueError;
    case ErrorKind::kNotImplemented: return PyExc_NotImplementedError;
    case ErrorKind::kOutOfMemory: return out_of_memory_error;
    case ErrorKind::kLinAlg: return linalg_error;
    case ErrorKind::kConnection: return PyExc_ConnectionError;
  }
  return PyExc_RuntimeError;
}

}  // namespace

bool init_errors(PyObject* module) {
  out_of_memory_error = PyErr_NewExceptionWithDoc("teletensor.OutOfMemoryError",
                                                  "A device or this session has no memory left for what was asked.",
                                                  PyExc_RuntimeError, nullptr);
  linalg_error = PyErr_NewExceptionWithDoc("teletensor.linalg.LinAlgError",
                                           "A matrix has no such decomposition, inverse or solution.",
                                           PyExc_RuntimeError, nullptr);
  return out_of_memory_error && PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_error) == 0 &&
         linalg_error && PyModule_AddObjectRef(module, "LinAlgError", linalg_error) == 0;
}

void set_python_error(const std::exception& e) {
  if (dynamic_cast<const PythonErrorSet*>(&e) || dynamic_cast<const client::Interrupted*>(&e)) return;
  if (dynamic_cast<const std::bad_alloc*>(&e)) {
    PyErr_NoMemory();
    return;
  }
  if (auto* error = dynamic_cast<const Error*>(&e)) {
    PyErr_SetString(exception_type(error->kind()), error->message().c_str());
    return;
  }
  PyErr_SetString(PyExc_RuntimeError, e.what());
}

}  // namespace tt::python
