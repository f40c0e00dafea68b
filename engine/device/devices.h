// Devices: the registry of this process's devices. Filled once at start, then read-only and thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/schema/device.h"

namespace tt {

struct DeviceInfo {
  Device device;
  std::string name;           // "AMD EPYC, 2 cores, avx512"; "NVIDIA H200"
  uint64_t total_memory = 0;  // bytes
  // Compute capability and driver version of a GPU, such as "9.0" and "580.65"; empty for the CPU.
  std::string compute_capability;
  std::string driver;
};

class Devices {
 public:
  // The process's registry, created with the CPU; other backends add their devices. Never destroyed: storages may
  // outlive main.
  static Devices& instance();

  // Throws Error (ValueError) if the device exists already.
  void add(DeviceInfo info, std::unique_ptr<Backend> backend);
  bool has(Device d) const;
  // These throw Error (RuntimeError) if the device does not exist.
  Backend& backend(Device d) const;
  Allocator& allocator(Device d) const { return backend(d).allocator(); }
  Stream& stream(Device d) const { return backend(d).stream(); }
  std::vector<DeviceInfo> list() const;

  // Adds a cache that keeps host memory between calls: compiled code, plans. Its `forget` releases what it keeps for a
  // tenant, or for tenant 0 what it keeps beyond a few MiB. Any thread may call it.
  void add_cache(std::function<void(uint64_t tenant)> forget);
  // Calls `forget` of all caches.
  void forget(uint64_t tenant) const;

 private:
  struct Entry {
    DeviceInfo info;
    std::unique_ptr<Backend> backend;
  };
  std::vector<Entry> entries_;
  std::vector<std::function<void(uint64_t)>> caches_;
};

// Adds the CPU. Defined in memory/cpu_backend.cc, because the CPU's memory is a caching pool.
void add_cpu(Devices& devices);

}  // namespace tt
