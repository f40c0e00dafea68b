// OverridableFunction: a Python function of the package whose calls honour __torch_function__.
//
// Calls the function it contains, unless a function mode or an argument overrides it. In mixed precision, functions of
// PyTorch's autocast lists are called through a Python function (python/teletensor/_autocast_lists.py). Its attributes
// are those of the function. It is a descriptor like a function, so it may be a method.
#pragma once

#include <Python.h>

namespace tt::python {

// Adds _C.overridable(function, module, qualname, only_modes=False, passed=None, autocast=None, form=None) to the
// module.
bool init_overridable(PyObject* module);

}  // namespace tt::python
