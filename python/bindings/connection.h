// Connection: the session as Python holds it, to close it and to ask it about itself.
#pragma once

#include <pybind11/pybind11.h>

#include "client/session.h"

namespace tt::python {

class Connection {
 public:
  explicit Connection(Ref<client::Session> session) : session_(std::move(session)) {}
  client::Session& session() const { return *session_; }
  const Ref<client::Session>& ref() const { return session_; }

 private:
  Ref<client::Session> session_;
};

// Makes the class's __new__ run __init__, so that no object exists without its C++ value: pybind11 gives a method of
// such an object uninitialised memory.
inline void require_init(pybind11::handle type) {
  static newfunc const make = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_new;  // the same for all of pybind11's
  reinterpret_cast<PyTypeObject*>(type.ptr())->tp_new = [](PyTypeObject* type, PyObject* args, PyObject* keywords) {
    PyObject* self = make(type, args, keywords);
    if (self && type->tp_init(self, args, keywords) < 0) Py_CLEAR(self);
    return self;
  };
}

// What a build adds to the module: nothing, or (tests/in_process) an engine in this process.
void bind_extra(pybind11::module_& m);

}  // namespace tt::python
