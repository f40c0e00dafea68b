#include "python/bindings/admin.h"

#include <google/protobuf/util/json_util.h>

#include "client/admin.h"
#include "engine/schema/error.h"
#include "python/bindings/connection.h"
#include "python/bindings/tensor/gil.h"

namespace py = pybind11;

namespace tt::python {
namespace {

// Returns JSON text, which the caller parses with Python's json module.
std::string to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  check(status.ok(), "[admin] the reply cannot be converted to JSON");
  return text;
}

}  // namespace

void bind_admin(py::module_& m) {
  using client::Admin;
  using Free = py::call_guard<ReleaseGil>;
  py::class_<Admin> admin(m, "Admin", "Queries and controls an engine. Results are JSON strings.");
  require_init(admin);
  admin
      .def(py::init([](const std::string& address, const std::string& token, double deadline_seconds,
                       const std::string& admin_token, const std::string& fingerprint, const std::string& ca,
                       const std::string& certificate, const std::string& key) {
             return std::make_unique<Admin>(address, token, deadline_seconds, admin_token,
                                            client::TrustOptions{fingerprint, ca, certificate, key});
           }),
           py::arg("address") = "", py::arg("token") = "", py::arg("deadline_seconds") = 5.0,
           py::arg("admin_token") = "", py::arg("fingerprint") = "", py::arg("ca") = "", py::arg("certificate") = "",
           py::arg("key") = "")
      .def_property_readonly("address", [](const Admin& a) { return a.address(); })
      .def(
          "status", [](const Admin& a) { return to_json(a.status()); }, Free())
      .def(
          "empty_cache", [](const Admin& a) { return to_json(a.empty_cache()); }, Free())
      .def(
          "snapshot", [](const Admin& a, const std::string& d) { return to_json(a.snapshot(parse_device(d))); }, Free())
      .def(
          "drain", [](const Admin& a, double seconds) { a.drain(seconds); }, Free())
      .def(
          "upgrade", [](const Admin& a, double seconds, bool force) { return to_json(a.upgrade(seconds, force)); },
          Free())
      .def(
          "profile", [](const Admin& a) { return to_json(a.profile()); }, Free())
      .def(
          "end_session", [](const Admin& a, uint64_t id) { a.end_session(id); }, Free());
}

}  // namespace tt::python
