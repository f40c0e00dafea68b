#include "engine/schema/device.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "engine/schema/error.h"
#include "engine/schema/foreign_devices.h"

namespace tt {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"cpu", "cuda", "meta"};

// Only accelerators have an index.
constexpr int64_t kMaxIndex = 127;
int64_t max_index(DeviceType type) {
  if (is_plugin(type)) return kMaxPluginDevices - 1;
  return type == DeviceType::kCUDA ? kMaxIndex : 0;
}

// The names of the types of device libraries.
struct PluginNames {
  struct Entry {
    std::string name;     // empty: the type is unknown
    std::string renamed;  // shown instead, if not empty
  };
  Mutex mutex;
  std::array<Entry, kMaxPluginTypes> entries ABSL_GUARDED_BY(mutex);
  std::atomic<uint32_t> known{0};  // one bit per type, so that decode_device() needs no lock
};

PluginNames& plugin_names() {
  static auto* names = new PluginNames;  // used by threads that outlive main
  return *names;
}

size_t entry_number(DeviceType type) { return static_cast<size_t>(type) - static_cast<size_t>(DeviceType::kPlugin); }

bool is_known(DeviceType type) {
  if (!is_plugin(type)) return true;
  return (plugin_names().known.load(std::memory_order_acquire) >> entry_number(type) & 1) != 0;
}

// Throws Error (ValueError) unless a type of device libraries may have the name.
void check_name(DeviceType type, std::string_view name) {
  check(ErrorKind::kValue, is_plugin(type) && static_cast<int>(type) < kNumDeviceTypes,
        "a device type with the number ", static_cast<int>(type), " cannot be named");
  check(ErrorKind::kValue, is_device_type_name(name),
        "expected a name of a device type (a lower-case identifier of at ",
        "most 32 characters that is no device type of PyTorch), got '", name, "'");
}

}  // namespace

bool is_device_type_name(std::string_view name) {
  constexpr size_t kMaxLength = 32;
  const auto starts = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  if (name.empty() || name.size() > kMaxLength || !starts(name[0])) return false;
  if (!std::all_of(name.begin(), name.end(), [&](char c) { return starts(c) || (c >= '0' && c <= '9'); })) return false;
  const auto is_in = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return !is_in(kNames) && !is_in(kForeignDeviceTypes);
}

void name_device_type(DeviceType type, std::string_view name) {
  check_name(type, name);
  PluginNames& names = plugin_names();
  MutexLock lock(names.mutex);
  for (int i = 0; i < kMaxPluginTypes; ++i) {
    PluginNames::Entry& entry = names.entries[static_cast<size_t>(i)];
    if (plugin_type(i) == type) continue;
    check(ErrorKind::kValue, entry.renamed != name, "the device type '", name, "' exists already");
    if (entry.name != name) continue;
    entry = {};  // of an earlier engine
    names.known.fetch_and(~(1u << i), std::memory_order_release);
  }
  names.entries[entry_number(type)].name = std::string(name);
  names.known.fetch_or(1u << entry_number(type), std::memory_order_release);
}

void rename_device_type(DeviceType type, std::string_view name) {
  check_name(type, name);
  const std::optional<DeviceType> other = find_device_type(name);
  check(ErrorKind::kValue, !other || *other == type, "the device type '", name, "' exists already");
  PluginNames& names = plugin_names();
  MutexLock lock(names.mutex);
  names.entries[entry_number(type)].renamed = std::string(name);
  names.known.fetch_or(1u << entry_number(type), std::memory_order_release);
}

std::string device_type_name(DeviceType type) {
  if (!is_plugin(type)) return std::string(kNames[static_cast<size_t>(type)]);
  if (static_cast<int>(type) >= kNumDeviceTypes) return "";
  PluginNames& names = plugin_names();
  MutexLock lock(names.mutex);
  const PluginNames::Entry& entry = names.entries[entry_number(type)];
  return entry.renamed.empty() ? entry.name : entry.renamed;
}

std::optional<DeviceType> find_device_type(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<DeviceType>(i);
  }
  if (name.empty()) return std::nullopt;
  PluginNames& names = plugin_names();
  MutexLock lock(names.mutex);
  for (int i = 0; i < kMaxPluginTypes; ++i) {
    const PluginNames::Entry& entry = names.entries[static_cast<size_t>(i)];
    if (entry.name == name || entry.renamed == name) return plugin_type(i);
  }
  return std::nullopt;
}

Device decode_device(int64_t encoded) {
  int64_t type = encoded >> 8, index = encoded & 0xff;
  bool known = type >= 0 && type < kNumDeviceTypes && is_known(static_cast<DeviceType>(type));
  check(known && index <= max_index(static_cast<DeviceType>(type)), "invalid device number ", encoded);
  return {static_cast<DeviceType>(type), static_cast<int8_t>(index)};
}

Device parse_device(std::string_view text) {
  size_t colon = text.find(':');
  const std::optional<DeviceType> type = find_device_type(text.substr(0, colon));
  if (!type) fail(ErrorKind::kRuntime, "Expected one of cpu, cuda, meta device type at start of device string: ", text);
  Device device;
  device.type = *type;
  if (colon == std::string_view::npos) return device;
  int32_t index = 0;
  bool valid =
      absl::SimpleAtoi(message_part(text.substr(colon + 1)), &index) && index >= 0 && index <= max_index(device.type);
  check(valid, "Invalid device string: '", text, "'");
  device.index = static_cast<int8_t>(index);
  return device;
}

std::string to_string(Device d) {
  std::string type = device_type_name(d.type);
  if (!is_accelerator(d.type)) return type;
  return absl::StrCat(type, ":", static_cast<int>(d.index));
}

}  // namespace tt
