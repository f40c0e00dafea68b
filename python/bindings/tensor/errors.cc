#include "python/bindings/tensor/errors.h"

#include <cerrno>
#include <new>
#include <string_view>

#include "client/connection/interruption.h"
#include "client/session/session.h"
#include "python/bindings/tensor/object.h"

namespace tt::python {
namespace {

PyObject* out_of_memory_error = nullptr;
PyObject* linalg_error = nullptr;
PyObject* index_error = nullptr;  // an IndexError that `except RuntimeError` catches, too

PyObject* exception_type(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRuntime: return PyExc_RuntimeError;
    case ErrorKind::kIndex: return index_error;
    case ErrorKind::kType: return PyExc_TypeError;
    case ErrorKind::kValue: return PyExc_ValueError;
    case ErrorKind::kNotImplemented: return PyExc_NotImplementedError;
    case ErrorKind::kOutOfMemory: return out_of_memory_error;
    case ErrorKind::kLinAlg: return linalg_error;
    case ErrorKind::kConnection: return PyExc_ConnectionError;
    case ErrorKind::kFileNotFound: return PyExc_FileNotFoundError;
    case ErrorKind::kIsADirectory: return PyExc_IsADirectoryError;
    case ErrorKind::kNotADirectory: return PyExc_NotADirectoryError;
    case ErrorKind::kPermission: return PyExc_PermissionError;
  }
  return PyExc_RuntimeError;
}

// The `errno` attribute of the exception, which only OSErrors have; else 0. Permission errors are EACCES, also if the
// operating system reported EPERM.
int error_number(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kFileNotFound: return ENOENT;
    case ErrorKind::kIsADirectory: return EISDIR;
    case ErrorKind::kNotADirectory: return ENOTDIR;
    case ErrorKind::kPermission: return EACCES;
    default: return 0;
  }
}

// Replaces invalid UTF-8: messages may quote the user's bytes.
void set_error(PyObject* type, std::string_view message, int number = 0) {
  Owned text(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
  if (!text) return;
  Owned arguments(number == 0 ? Py_BuildValue("(O)", text.get()) : Py_BuildValue("(iO)", number, text.get()));
  if (arguments) PyErr_SetObject(type, arguments.get());
}

}  // namespace

bool init_errors(PyObject* module) {
  out_of_memory_error =
      PyErr_NewExceptionWithDoc("teletensor.OutOfMemoryError", "A device or this session has too little memory left.",
                                PyExc_RuntimeError, nullptr);
  linalg_error = PyErr_NewExceptionWithDoc("teletensor.linalg.LinAlgError",
                                           "A matrix has no decomposition, inverse or solution of the requested kind.",
                                           PyExc_RuntimeError, nullptr);
  // PyTorch raises one or the other for an invalid index, by operator.
  const Owned bases(PyTuple_Pack(2, PyExc_IndexError, PyExc_RuntimeError));
  index_error = bases ? PyErr_NewException("teletensor._C.IndexError", bases.get(), nullptr) : nullptr;
  return out_of_memory_error && PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_error) == 0 &&
         linalg_error && PyModule_AddObjectRef(module, "LinAlgError", linalg_error) == 0 && index_error &&
         PyModule_AddObjectRef(module, "IndexError", index_error) == 0;
}

void set_python_error(const std::exception& e) {
  // For both types the Python exception is already set.
  if (dynamic_cast<const PythonErrorSet*>(&e) || dynamic_cast<const client::Interrupted*>(&e)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a Python exception was cleared before it was raised");
    return;
  }
  if (dynamic_cast<const std::bad_alloc*>(&e)) {
    PyErr_NoMemory();
    return;
  }
  if (auto* error = dynamic_cast<const Error*>(&e)) {
    set_error(exception_type(error->kind()), error->message(), error_number(error->kind()));
    return;
  }
  set_error(PyExc_RuntimeError, e.what());
}

}  // namespace tt::python
