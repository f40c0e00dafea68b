#include "server/convert.h"

#include "base/text.h"

namespace tt::server {
namespace {

// Maximum length of an error message in bytes. An error may quote long arguments.
constexpr size_t kMaxMessage = 4096 + 256;

}  // namespace

static_assert(static_cast<int>(ErrorKind::kRuntime) == v1::RUNTIME &&
              static_cast<int>(ErrorKind::kOutOfMemory) == v1::OUT_OF_MEMORY &&
              static_cast<int>(ErrorKind::kLinAlg) == v1::LINALG &&
              static_cast<int>(ErrorKind::kPermission) == v1::PERMISSION);

v1::Error to_wire(const Poison& poison) {
  v1::Error wire;
  wire.set_kind(static_cast<v1::ErrorKind>(poison.kind));
  wire.set_message(valid_utf8(poison.message, kMaxMessage));
  wire.set_op(valid_utf8(poison.op, kMaxMessage));  // an image may hold any text
  wire.set_site(poison.site);
  wire.set_retriable(poison.retriable);
  return wire;
}

v1::Error to_wire(const Error& error) {
  v1::Error wire;
  wire.set_kind(static_cast<v1::ErrorKind>(error.kind()));
  wire.set_message(valid_utf8(error.message(), kMaxMessage));
  wire.set_retriable(error.kind() == ErrorKind::kOutOfMemory);
  return wire;
}

v1::TensorDescription to_wire(const TensorMeta& meta) {
  v1::TensorDescription wire;
  wire.set_dtype(static_cast<uint32_t>(meta.dtype));
  wire.mutable_sizes()->Add(meta.sizes.begin(), meta.sizes.end());
  wire.set_device(meta.device.encode());
  return wire;
}

v1::DeviceDescription to_wire(const DeviceInfo& info) {
  v1::DeviceDescription wire;
  wire.set_device(info.device.encode());
  wire.set_name(info.name);
  wire.set_total_memory(info.total_memory);
  wire.set_compute_capability(info.compute_capability);
  wire.set_driver(info.driver);
  if (is_plugin(info.device.type)) wire.set_type_name(device_type_name(info.device.type));
  return wire;
}

absl::Status to_status(const Error& error) {
  bool memory = error.kind() == ErrorKind::kOutOfMemory;
  return absl::Status(memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument,
                      valid_utf8(error.message(), kMaxMessage));
}

absl::Status fault_status(const v1::Error& fault) { return absl::InvalidArgumentError(fault.message()); }

}  // namespace tt::server
