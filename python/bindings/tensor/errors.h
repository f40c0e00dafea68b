// Converts C++ errors to Python exceptions; the only place that does.
#pragma once

#include <Python.h>

namespace tt::python {

// Adds OutOfMemoryError, LinAlgError and IndexError (RuntimeErrors) to the module.
bool init_errors(PyObject* module);

}  // namespace tt::python
