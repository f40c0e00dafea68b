// Connection: the Python object that owns a session, for closing and querying it.
#pragma once

#include <pybind11/pybind11.h>

#include "client/session/session.h"

namespace tt::python {

class Connection {
 public:
  // `address` is empty if other processes cannot reach the engine.
  explicit Connection(Ref<client::Session> session, std::string address = "")
      : session_(std::move(session)), address_(std::move(address)) {}
  const std::string& address() const { return address_; }
  client::Session& session() const { return *session_; }
  const Ref<client::Session>& ref() const { return session_; }

 private:
  Ref<client::Session> session_;
  std::string address_;
};

// Makes the class's __new__ run __init__, so that no object exists without its C++ value: pybind11 would pass
// uninitialised memory to the methods of such an object.
inline void require_init(pybind11::handle type) {
  // pybind11's function, the same for all classes
  static newfunc const make = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_new;
  reinterpret_cast<PyTypeObject*>(type.ptr())->tp_new = [](PyTypeObject* type, PyObject* args, PyObject* keywords) {
    PyObject* self = make(type, args, keywords);
    if (self && type->tp_init(self, args, keywords) < 0) Py_CLEAR(self);
    return self;
  };
}

// Adds further bindings to the module. The default version adds none; the version of tests/in_process binds an engine
// in this process.
void bind_extra(pybind11::module_& m);

}  // namespace tt::python
