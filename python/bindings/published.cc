#include "python/bindings/published.h"

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/published.h"
#include "engine/schema/error.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"

namespace py = pybind11;

namespace tt::python {
namespace {

py::tuple open_published(const std::string& name, const std::string& principal) {
  client::Session& session = current_session();
  client::OpenedTensors opened = client::open_published(session, name, principal, current_site(session));
  py::object tensors = py::reinterpret_steal<py::object>(throw_if_null(wrap_tuple(opened.tensors)));
  return py::make_tuple(std::move(opened.keys), std::move(tensors));
}

}  // namespace

void bind_published(py::module_& m) {
  m.def(
      "publish",
      [](const std::string& name, const std::optional<std::vector<std::string>>& keys, const py::sequence& tensors,
         std::vector<std::string> to, bool read_only, bool persist) {
        std::vector<client::Tensor> list;
        for (py::handle tensor : tensors) list.push_back(tensor_argument(tensor.ptr(), "publish"));
        const uint32_t site = list.empty() ? 0 : current_site(*list[0]->session);
        return client::publish(name, keys, list, {std::move(to), read_only, persist}, site);
      },
      py::arg("name"), py::arg("keys"), py::arg("tensors"), py::arg("to"), py::arg("read_only"), py::arg("persist"));
  m.def("open_published", &open_published, py::arg("name"), py::arg("principal"));
  m.def(
      "unpublish",
      [](const std::string& name, const std::string& principal) {
        client::Session& session = current_session();
        client::unpublish(session, name, principal, current_site(session));
      },
      py::arg("name"), py::arg("principal"));
  m.def("list_published", [] {
    client::Session& session = current_session();
    return client::list_published(session, current_site(session));
  });
  m.def("is_read_only", [](py::handle tensor) {
    const client::Tensor& handle = tensor_argument(tensor.ptr(), "is_read_only");
    return handle->id != 0 && handle->session->is_read_only(handle);
  });
  m.def("mark_read_only", [](py::handle tensor) {
    const client::Tensor& handle = tensor_argument(tensor.ptr(), "mark_read_only");
    handle->session->mark_read_only(handle);
  });
}

}  // namespace tt::python
