#include "kernels/plugin/plugin.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/memory/alloc_conf.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "kernels/plugin/backend.h"
#include "kernels/plugin/call.h"
#include "kernels/plugin/copy.h"
#include "kernels/plugin/fallback.h"

namespace tt::plugin {
namespace {

// By type; written at start. Never destroyed: storages may outlive main.
std::array<DeviceLibrary*, kMaxPluginTypes> libraries{};

DeviceLibrary*& slot(DeviceType type) {
  return libraries.at(static_cast<size_t>(type) - static_cast<size_t>(DeviceType::kPlugin));
}

// Runs the kernel, whose call has allocated outputs, or the CPU if the kernel does not support the call.
void run_or_fall_back(Call& call) {
  DeviceLibrary& library = library_of(call.inferred.backend);
  const TeletensorDeviceOperator& kernel = *library.find(call.op->id);
  const bool is_empty =
      std::all_of(call.outputs.begin(), call.outputs.end(), [](const Tensor& output) { return output.numel() == 0; });
  if (is_empty || run_kernel(library, kernel, call)) return;
  run_on_cpu(call, "the device library's kernel does not support these arguments");
}

void run(Call& call) {
  const TeletensorDeviceOperator* kernel = library_of(call.inferred.backend).find(call.op->id);
  if (kernel == nullptr) return run_on_cpu(call, "the device library has no kernel for it");
  if (!accepts(*kernel, call)) return run_on_cpu(call, "the device library's kernel does not accept these arguments");
  const bool is_elementwise = (kernel->flags & TELETENSOR_DEVICE_ELEMENTWISE) != 0;
  is_elementwise ? run_with_separate_outputs(call, &run_or_fall_back) : run_with_plain_outputs(call, &run_or_fall_back);
}

DeviceInfo describe(DeviceLibrary& library, Device device) {
  TeletensorDeviceProperties properties{};
  properties.size = sizeof properties;
  library.call("properties", library.table().properties, device.index, &properties);
  const std::string name(properties.name, strnlen(properties.name, sizeof properties.name));
  const bool valid = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
  check(ErrorKind::kValue, valid && !name.empty(), library.name(), ": properties: the device's name is not printable");
  check(ErrorKind::kValue, properties.total_memory > 0, library.name(), ": properties: the device has no memory");
  DeviceInfo info;
  info.device = device;
  info.name = name;
  info.total_memory = properties.total_memory;
  info.driver = library.version();
  return info;
}

void register_kernels(Dispatcher& dispatcher, Key key) {
  dispatcher.adopt_kernels(key, Key::kCUDA);
  dispatcher.set_fallback(key, &run);
  dispatcher.set(op_id::kEmpty, key, &allocate_outputs);
  dispatcher.set(op_id::kEmptyLike, key, &allocate_outputs);
  dispatcher.set(op_id::kAssign, key, &assign);
  dispatcher.set(op_id::kLiteral, key, &run_on_host);
  dispatcher.set(op_id::kClone, key, &clone);
  dispatcher.set(op_id::kToDtype, key, &clone);
  dispatcher.set(op_id::kToDevice, key, &clone);
}

}  // namespace

int add_library(std::unique_ptr<DeviceLibrary> library, Devices& devices, Dispatcher& dispatcher) {
  const AllocConf conf = alloc_conf_of_environment();
  const auto free = std::find(libraries.begin(), libraries.end(), nullptr);
  check(ErrorKind::kValue, free != libraries.end(), "there are more than ", kMaxPluginTypes, " device libraries");
  const DeviceType type = plugin_type(static_cast<int>(free - libraries.begin()));
  int32_t count = 0;
  library->call("device_count", library->table().device_count, &count);
  check(ErrorKind::kValue, count >= 0 && count <= kMaxPluginDevices, library->name(), ": device_count: it has ", count,
        " devices, of at most ", kMaxPluginDevices);
  if (count == 0) return 0;
  std::vector<DeviceInfo> infos;
  for (int i = 0; i < count; ++i) infos.push_back(describe(*library, Device{type, static_cast<int8_t>(i)}));
  check(ErrorKind::kValue, !find_device_type(library->name()), "there is another device library for ", library->name());
  name_device_type(type, library->name());
  *free = library.release();
  for (DeviceInfo& info : infos) {
    auto backend = make_backend(**free, info.device, info.total_memory, conf);
    devices.add(std::move(info), std::move(backend));
  }
  register_kernels(dispatcher, backend_key(type));
  return count;
}

DeviceLibrary& library_of(DeviceType type) {
  DeviceLibrary* const library = slot(type);
  check(library != nullptr, "there is no device library for the device type ", static_cast<int>(type));
  return *library;
}

}  // namespace tt::plugin
