// Adds connect_in_process() to the test build's teletensor._C: the same bindings, with an engine in the interpreter's
// process.
#include <pybind11/pybind11.h>

#include <chrono>
#include <memory>
#include <string>

#include "python/bindings/connection.h"
#include "server/daemon/backends.h"
#include "tests/in_process/transport.h"

namespace tt::python {

void bind_extra(pybind11::module_& m) {
  auto connect = [](const std::string& record) {
    static auto engine = [] {
      server::register_backends(0, 0);
      server::Sessions::Options options;
      options.lease = std::chrono::hours(24);          // no stream is attached, so the lease starts at once
      options.peers = distributed::PeerPolicy::any();  // this process is its only client
      return std::make_shared<server::InProcessEngine>(std::move(options));
    }();
    return Connection(
        client::Session::connect(std::make_unique<InProcessTransport>(engine, record), "in-process rows"));
  };
  m.def("connect_in_process", connect, pybind11::arg("record") = "");
}

}  // namespace tt::python
