#include "python/bindings/store.h"

#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/connection/interruption.h"
#include "distributed/store/remote_store.h"
#include "python/bindings/connection.h"
#include "python/bindings/tensor/gil.h"

namespace py = pybind11;

namespace tt::python {
namespace {

using distributed::RemoteStore;
using Strings = std::vector<std::string>;  // from Python, str (in UTF-8) or bytes

PyObject* exception_type(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kDeadlineExceeded: return PyExc_TimeoutError;
    case absl::StatusCode::kInvalidArgument: return PyExc_ValueError;
    case absl::StatusCode::kUnauthenticated: return PyExc_PermissionError;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kFailedPrecondition: return PyExc_ConnectionError;
    default: return PyExc_RuntimeError;
  }
}

// Requires the GIL. An interrupted call has set the Python exception already (Interruption).
void throw_if_error(const absl::Status& status) {
  if (status.ok()) return;
  if (absl::IsCancelled(status)) throw client::Interrupted();
  const std::string message(status.message());
  PyErr_SetString(exception_type(status.code()), message.c_str());
  throw py::error_already_set();
}
template <typename T>
T value_or_throw(absl::StatusOr<T> result) {
  throw_if_error(result.status());
  return *std::move(result);
}

// Calls `function` without the GIL, and throws its error.
template <typename Function>
auto without_gil(Function function) {
  auto result = [&] {
    ReleaseGil released;
    return function();
  }();
  if constexpr (std::is_same_v<decltype(result), absl::Status>)
    throw_if_error(result);
  else
    return value_or_throw(std::move(result));
}

std::chrono::milliseconds milliseconds(double seconds) {
  constexpr double kMaxSeconds = 1e9;
  return std::chrono::milliseconds(static_cast<int64_t>(std::min(seconds, kMaxSeconds) * 1000));
}

// Closing the connection waits for gRPC's threads.
struct DeleteWithoutGil {
  void operator()(RemoteStore* store) const {
    ReleaseGil released;
    delete store;
  }
};

}  // namespace

void bind_store(py::module_& m) {
  py::class_<RemoteStore, std::unique_ptr<RemoteStore, DeleteWithoutGil>> store(
      m, "RemoteStore",
      "The client of a store. Keys and values are str or bytes, times in seconds. Raises TimeoutError, "
      "ConnectionError, "
      "PermissionError (another token), ValueError or, if the store is full, RuntimeError.");
  require_init(store);
  store
      .def(py::init([](const std::string& address, const std::string& token, double timeout) {
             std::unique_ptr<RemoteStore> store = without_gil([&] {
               return RemoteStore::connect(address, token, milliseconds(timeout),
                                           [] { return client::is_interruptible() && client::interrupted(); });
             });
             return std::unique_ptr<RemoteStore, DeleteWithoutGil>(store.release());
           }),
           py::arg("address"), py::arg("token"), py::arg("timeout"))
      .def_property_readonly("address", &RemoteStore::address)
      .def("set", [](RemoteStore& s, const Strings& keys,
                     const Strings& values) { without_gil([&] { return s.set(keys, values); }); })
      .def("get",
           [](RemoteStore& s, const Strings& keys, double timeout) {
             const Strings values = without_gil([&] { return s.get(keys, milliseconds(timeout)); });
             py::list result(values.size());
             for (size_t i = 0; i < values.size(); ++i) result[i] = py::bytes(values[i]);
             return result;
           })
      .def("wait", [](RemoteStore& s, const Strings& keys,
                      double timeout) { without_gil([&] { return s.wait(keys, milliseconds(timeout)); }); })
      .def("add", [](RemoteStore& s, const std::string& key,
                     int64_t amount) { return without_gil([&] { return s.add(key, amount); }); })
      .def("append", [](RemoteStore& s, const std::string& key,
                        const std::string& value) { without_gil([&] { return s.append(key, value); }); })
      .def("compare_set",
           [](RemoteStore& s, const std::string& key, const std::string& expected, const std::string& desired) {
             return py::bytes(without_gil([&] { return s.compare_set(key, expected, desired); }));
           })
      .def("erase", [](RemoteStore& s, const std::string& key) { return without_gil([&] { return s.erase(key); }); })
      .def("check", [](RemoteStore& s, const Strings& keys) { return without_gil([&] { return s.check(keys); }); })
      .def("size", [](RemoteStore& s) { return without_gil([&] { return s.size(); }); });
}

}  // namespace tt::python
