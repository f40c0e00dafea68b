#include "python/bindings/autocast.h"

#include <string>
#include <string_view>
#include <utility>

#include "client/session/autocast.h"
#include "engine/schema/error.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"

namespace py = pybind11;

namespace tt::python {
namespace {

DeviceType device_type(std::string_view name) {
  check(name == "cpu" || name == "cuda", "User specified an unsupported autocast device_type '", name, "'");
  return name == "cuda" ? DeviceType::kCUDA : DeviceType::kCPU;
}

py::object dtype_of(const std::optional<DType>& dtype) {
  return dtype ? py::reinterpret_borrow<py::object>(dtype_object(*dtype)) : py::none();
}

DType lower_precision(const py::object& dtype) {
  const DType t = dtype_from(dtype.ptr());
  check(is_reduced_floating(t), "[set_autocast_dtype] expected dtype to be float16 or bfloat16, got ", name(t));
  return t;
}

const char* policy_name(AutocastPolicy policy) {
  switch (policy) {
    case AutocastPolicy::kNone: return "";
    case AutocastPolicy::kLower: return "lower";
    case AutocastPolicy::kFloat32: return "float32";
    case AutocastPolicy::kFloat32ToLower: return "float32_to_lower";
    case AutocastPolicy::kFloat32Result: return "float32_result";
    case AutocastPolicy::kWidest: return "widest";
    case AutocastPolicy::kRefused: return "refused";
  }
  return "";
}

}  // namespace

void bind_autocast(py::module_& m) {
  using client::autocast_settings;
  m.def("autocast_dtype", [](const std::string& device) {  // None if autocast is off
    return dtype_of(autocast_settings().state().dtype(device_type(device)));
  });
  m.def("autocast_fast_dtype", [](const std::string& device) {  // also while autocast is off
    return dtype_of(autocast_settings().dtype(device_type(device)));
  });
  m.def("set_autocast_fast_dtype", [](const std::string& device, const py::object& dtype) {
    autocast_settings().dtype(device_type(device)) = lower_precision(dtype);
  });
  m.def("set_autocast_enabled",
        [](const std::string& device, bool enabled) { autocast_settings().enabled(device_type(device)) = enabled; });
  m.def("set_autocast_dtype", [](const std::string& device, const py::object& dtype) {  // None: off
    const DeviceType type = device_type(device);
    autocast_settings().enabled(type) = !dtype.is_none();
    if (!dtype.is_none()) autocast_settings().dtype(type) = lower_precision(dtype);
  });
  m.def("autocast_cache_enabled", [] { return autocast_settings().cache_enabled; });
  m.def("set_autocast_cache_enabled", [](bool enabled) { autocast_settings().cache_enabled = enabled; });
  m.def("add_autocast_nesting", [](int change) { return autocast_settings().nesting += change; });
  m.def("clear_autocast_cache", &client::clear_autocast_cache);
  m.def("end_autocast_regions", &client::end_autocast_regions);
  m.def("autocast_policy", [](const std::string& op, const std::string& device) {
    const Op* found = find_op(op);
    check(ErrorKind::kValue, found != nullptr, "[autocast_policy] unknown operator ", op);
    return policy_name(autocast_policy(*found, device_type(device)));
  });
}

}  // namespace tt::python
