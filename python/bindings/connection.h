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

// What a build adds to the module: nothing, or (tests/in_process) an engine in this process.
void bind_extra(pybind11::module_& m);

}  // namespace tt::python
