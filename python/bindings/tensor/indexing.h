// x[...] and x[...] = v: integers, slices, ellipsis, None, booleans, integer and boolean tensors.
#pragma once

#include <Python.h>

namespace tt::python {

PyObject* get_item(PyObject* self, PyObject* index) noexcept;
int set_item(PyObject* self, PyObject* index, PyObject* value) noexcept;

}  // namespace tt::python
