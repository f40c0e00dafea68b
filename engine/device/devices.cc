#include "engine/device/devices.h"

#include "engine/schema/error.h"

namespace tt {

Devices& Devices::instance() {
  static Devices* devices = [] {
    auto* made = new Devices;
    add_cpu(*made);
    return made;
  }();
  return *devices;
}

void Devices::add(DeviceInfo info, std::unique_ptr<Backend> backend) {
  check(ErrorKind::kValue, !has(info.device), "device ", info.device, " already exists");
  entries_.push_back({std::move(info), std::move(backend)});
}

bool Devices::has(Device d) const {
  for (const Entry& entry : entries_) {
    if (entry.info.device == d) return true;
  }
  return false;
}

std::vector<DeviceInfo> Devices::list() const {
  std::vector<DeviceInfo> infos;
  infos.reserve(entries_.size());
  for (const Entry& entry : entries_) infos.push_back(entry.info);
  return infos;
}

Backend& Devices::backend(Device d) const {
  for (const Entry& entry : entries_) {
    if (entry.info.device == d) return *entry.backend;
  }
  std::string have;
  for (const Entry& entry : entries_) absl::StrAppend(&have, have.empty() ? "" : ", ", to_string(entry.info.device));
  fail(ErrorKind::kRuntime, "this engine has no device ", to_string(d), "; it has ", have);
}

void Devices::add_cache(std::function<void(uint64_t)> forget) { caches_.push_back(std::move(forget)); }

void Devices::forget(uint64_t tenant) const {
  for (const auto& forget : caches_) forget(tenant);
}

}  // namespace tt
