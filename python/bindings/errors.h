// The one place where C++ errors become Python exceptions.
#pragma once

#include <Python.h>

namespace tt::python {

// Adds OutOfMemoryError and LinAlgError (RuntimeErrors) to the module.
bool init_errors(PyObject* module);

}  // namespace tt::python
