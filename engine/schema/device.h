// Device: the location of a tensor's bytes. A value type; "cpu", "cuda:1", "meta", "mydev:0".
//
// The set of types is open: kMaxPluginTypes types have no name until a device library (kernels/plugin) names one in the
// daemon, or a session's opening announces the engine's names to a client. Their names are per process; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tt {

// kPlugin is the first of kMaxPluginTypes types; see plugin_type().
enum class DeviceType : uint8_t { kCPU = 0, kCUDA = 1, kMeta = 2, kPlugin = 3 };

inline constexpr int kMaxPluginTypes = 3;
inline constexpr int kMaxPluginDevices = 16;  // of one type
inline constexpr int kNumDeviceTypes = static_cast<int>(DeviceType::kPlugin) + kMaxPluginTypes;

constexpr DeviceType plugin_type(int n) { return static_cast<DeviceType>(static_cast<int>(DeviceType::kPlugin) + n); }
constexpr bool is_plugin(DeviceType type) { return type >= DeviceType::kPlugin; }
// Whether devices of the type are several and have memory of their own.
constexpr bool is_accelerator(DeviceType type) { return type == DeviceType::kCUDA || is_plugin(type); }

struct Device {
  DeviceType type = DeviceType::kCPU;
  int8_t index = 0;

  friend bool operator==(Device, Device) = default;
  // Returns the encoding used in instruction arguments and on the wire.
  int64_t encode() const { return static_cast<int64_t>(type) << 8 | static_cast<uint8_t>(index); }
};

// Numbers the accelerators, for tables with one entry per accelerator: GPUs from 0, devices of device libraries from
// the end. The first 80 GPUs, and all devices of device libraries, have entries of their own.
inline constexpr size_t kNumAccelerators = 128;
constexpr size_t accelerator_number(Device d) {
  const auto index = static_cast<size_t>(static_cast<uint8_t>(d.index)) % kNumAccelerators;
  if (!is_plugin(d.type)) return index;
  const auto n = static_cast<size_t>(d.type) - static_cast<size_t>(DeviceType::kPlugin);
  return kNumAccelerators - 1 - n * kMaxPluginDevices - index % kMaxPluginDevices;
}

Device decode_device(int64_t encoded);       // throws Error on an invalid number
Device parse_device(std::string_view text);  // throws Error (RuntimeError), as PyTorch does
std::string to_string(Device d);             // "cpu", "cuda:0", "meta"

// Whether a device library or a client may use this name for its type: a Python identifier in lower case of at most 32
// characters that is no device type of PyTorch.
bool is_device_type_name(std::string_view name);
// Names a type of device libraries, or replaces its name; another type that has the name loses it. Throws Error
// (ValueError) if the name is invalid, or the second name of another type.
void name_device_type(DeviceType type, std::string_view name);
// Sets a second name of a type, which is shown instead of the first; parse_device() accepts both. Throws
// Error (ValueError) if the name is invalid or another type's.
void rename_device_type(DeviceType type, std::string_view name);
// "cpu", "cuda", "meta" or the type's name; empty if it has none.
std::string device_type_name(DeviceType type);
// The type with this name, also if it is the first of two.
std::optional<DeviceType> find_device_type(std::string_view name);

}  // namespace tt
