// GpuMonitor: how busy the host's NVIDIA GPUs are, as the driver's library NVML reports it.
//
// The library (libnvidia-ml.so.1) is opened at run time; the declarations repeat those of nvml.h that are used. One
// thread reads the values once per second, because a call waits if the driver does; readers get values that are at most
// some seconds old. The numbers are those of the whole GPU, whatever process uses it, and of all GPUs that the driver
// has: NVML ignores CUDA_VISIBLE_DEVICES, and numbers GPUs by PCI address. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace tt::server {

class GpuMonitor {
 public:
  struct Gpu {
    uint32_t index = 0;                  // NVML's
    std::string uuid;                    // "GPU-8f6c..."
    std::string name;                    // "NVIDIA H100 80GB HBM3"
    std::optional<double> utilization;   // part of the last period in which a kernel ran, 0 to 1; none with MIG
    std::optional<uint64_t> used_bytes;  // memory that all processes use together
    std::optional<uint64_t> total_bytes;
  };

  // Returns null if there is no driver: the library cannot be opened, or reports no GPU. Otherwise the first values
  // have been read when it returns.
  static std::unique_ptr<const GpuMonitor> start(const std::string& library = "libnvidia-ml.so.1",
                                                 std::chrono::milliseconds interval = std::chrono::seconds(1));
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  // Returns the GPUs as last read; none if that was more than ten intervals ago.
  std::vector<Gpu> gpus() const;

 private:
  using Clock = std::chrono::steady_clock;
  class Library;

  GpuMonitor(std::unique_ptr<Library> library, std::chrono::milliseconds interval);
  void run();
  void read();

  const std::chrono::milliseconds interval_;
  const std::unique_ptr<Library> library_;
  mutable Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Gpu> gpus_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point read_at_ ABSL_GUARDED_BY(mutex_){};
  std::thread thread_;
};

}  // namespace tt::server
