#include "engine/device/devices.h"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/device/parallel.h"
#include "engine/memory/caching_pool.h"
#include "engine/memory/host_memory.h"
#include "engine/memory/system_memory.h"

namespace tt {
namespace {

class IdleEvent final : public Event {
 public:
  bool done() const override { return true; }
  void synchronize() override {}
};

class TimedEvent final : public Event {
 public:
  bool done() const override { return true; }
  void synchronize() override {}
  double elapsed_ms(const Event& since) const override {
    return std::chrono::duration<double, std::milli>(at_ - static_cast<const TimedEvent&>(since).at_).count();
  }

 private:
  const std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
};

class IdleStream final : public Stream {
 public:
  Device device() const override { return {}; }
  std::unique_ptr<Event> record() override { return std::make_unique<IdleEvent>(); }
  std::unique_ptr<Event> record_timed() override { return std::make_unique<TimedEvent>(); }
  void wait(const Event&) override {}
  void synchronize() override {}
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void zero(void* p, size_t bytes) override {
    if (bytes > 0) std::memset(p, 0, bytes);
  }
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(std::unique_ptr<Allocator> pool) : pool_(std::move(pool)) {}
  Allocator& allocator() override { return *pool_; }
  Allocator& staging() override { return *pool_; }
  Stream& stream() override { return stream_; }
  std::unique_ptr<Stream> lease_stream() override { return std::make_unique<IdleStream>(); }
  void synchronize() override {}

 private:
  std::unique_ptr<Allocator> pool_;
  IdleStream stream_;
};

std::string vector_extension() {
  if (__builtin_cpu_supports("avx512f")) return "avx512";
  return __builtin_cpu_supports("avx2") ? "avx2" : "baseline";
}

std::string model_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "CPU";
}

// The memory of the machine, or the limit of the process's container.
uint64_t total_memory() {
  const std::optional<HostMemory> host = read_host_memory();
  if (host) return host->total;
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void add_cpu(Devices& devices) {
  DeviceInfo info;
  info.name = absl::StrCat(model_name(), ", ", num_threads(), " cores, ", vector_extension());
  info.total_memory = total_memory();
  auto pool =
      std::make_unique<CachingPool>(info.device, std::make_unique<SystemMemory>([] { return read_host_memory(); }));
  // If the host ran out of memory, the operating system would kill a process. With the limit and with the check of
  // available memory, one tenant gets an error instead.
  pool->set_limit(default_memory_limit(info.total_memory));
  devices.add(std::move(info), std::make_unique<CpuBackend>(std::move(pool)));
}

}  // namespace tt
