// Device: the location of a tensor's bytes. A value type; "cpu", "cuda:1", "meta".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tt {

enum class DeviceType : uint8_t { kCPU = 0, kCUDA = 1, kMeta = 2 };

struct Device {
  DeviceType type = DeviceType::kCPU;
  int8_t index = 0;

  friend bool operator==(Device, Device) = default;
  // Returns the encoding used in instruction arguments and on the wire.
  int64_t encode() const { return static_cast<int64_t>(type) << 8 | static_cast<uint8_t>(index); }
};

Device decode_device(int64_t encoded);       // throws Error on an invalid number
Device parse_device(std::string_view text);  // throws Error (RuntimeError), as PyTorch does
std::string to_string(Device d);             // "cpu", "cuda:0", "meta"

}  // namespace tt
