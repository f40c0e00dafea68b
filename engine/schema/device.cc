#include "engine/schema/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

// Only CUDA devices have an index.
constexpr int64_t kMaxIndex = 127;
int64_t max_index(DeviceType type) { return type == DeviceType::kCUDA ? kMaxIndex : 0; }

}  // namespace

Device decode_device(int64_t encoded) {
  int64_t type = encoded >> 8, index = encoded & 0xff;
  bool known = type >= 0 && type <= static_cast<int64_t>(DeviceType::kMeta);
  check(known && index <= max_index(static_cast<DeviceType>(type)), "invalid device number ", encoded);
  return {static_cast<DeviceType>(type), static_cast<int8_t>(index)};
}

Device parse_device(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon);
  Device device;
  if (kind == "cpu")
    device.type = DeviceType::kCPU;
  else if (kind == "cuda")
    device.type = DeviceType::kCUDA;
  else if (kind == "meta")
    device.type = DeviceType::kMeta;
  else
    fail(ErrorKind::kRuntime, "Expected one of cpu, cuda, meta device type at start of device string: ", text);
  if (colon == std::string_view::npos) return device;
  int32_t index = 0;
  bool valid =
      absl::SimpleAtoi(message_part(text.substr(colon + 1)), &index) && index >= 0 && index <= max_index(device.type);
  check(valid, "Invalid device string: '", text, "'");
  device.index = static_cast<int8_t>(index);
  return device;
}

std::string to_string(Device d) {
  if (d.type == DeviceType::kCPU) return "cpu";
  if (d.type == DeviceType::kMeta) return "meta";
  return absl::StrCat("cuda:", static_cast<int>(d.index));
}

}  // namespace tt
