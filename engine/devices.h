// Devices: what this process computes on. Filled once at start, then read-only and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/allocator.h"
#include "engine/rules/device.h"
#include "engine/stream.h"

namespace tt {

struct DeviceInfo {
  Device device;
  std::string name;           // "AMD EPYC, 2 cores, avx512"
  uint64_t total_memory = 0;  // bytes
};

class Devices {
 public:
  // The process's table, which has the CPU from the start; other backends add theirs. Not destroyed:
  // storages may outlive main.
  static Devices& instance();

  // Throws Error (ValueError) on a device that is there already.
  void add(DeviceInfo info, std::unique_ptr<Allocator> allocator, std::unique_ptr<Stream> stream);
  bool has(Device d) const;
  // Throw Error (RuntimeError) on a device that is not there.
  Allocator& allocator(Device d) const;
  Stream& stream(Device d) const;
  std::vector<DeviceInfo> list() const;

 private:
  struct Entry {
    DeviceInfo info;
    std::unique_ptr<Allocator> allocator;
    std::unique_ptr<Stream> stream;
  };
  const Entry& at(Device d) const;
  std::vector<Entry> entries_;
};

}  // namespace tt
