// Devices: what this process computes on. Filled once at start, then read-only and thread-safe.
#pragma once

#include <cstdint>
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
  // Of a GPU: "9.0" and the driver's version, "580.65"; empty for the CPU.
  std::string compute_capability;
  std::string driver;
};

class Devices {
 public:
  // The process's table, which has the CPU from the start; other backends add theirs. Not destroyed:
  // storages may outlive main.
  static Devices& instance();

  // Throws Error (ValueError) on a device that is there already.
  void add(DeviceInfo info, std::unique_ptr<Backend> backend);
  bool has(Device d) const;
  // Throw Error (RuntimeError) on a device that is not there.
  Backend& backend(Device d) const;
  Allocator& allocator(Device d) const { return backend(d).allocator(); }
  Stream& stream(Device d) const { return backend(d).stream(); }
  std::vector<DeviceInfo> list() const;

 private:
  struct Entry {
    DeviceInfo info;
    std::unique_ptr<Backend> backend;
  };
  std::vector<Entry> entries_;
};

// Adds the CPU. Defined by memory/cpu_backend.cc, since the CPU's memory is a caching pool's.
void add_cpu(Devices& devices);

}  // namespace tt
