// DeviceLibrary: a shared object with the C table of engine/device/teletensor_device.h, checked when it is opened.
//
// Never closed, and never destroyed once its devices exist. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "engine/device/backend.h"
#include "engine/device/teletensor_device.h"
#include "engine/schema/device.h"
#include "engine/schema/error.h"

namespace tt::plugin {

class DeviceLibrary {
 public:
  // Opens a file, calls its teletensor_device_table() and checks the table. Throws Error with the reason if the library
  // cannot be used. The file's constructors have run then.
  static std::unique_ptr<DeviceLibrary> open(const std::string& path);
  // Checks a table, which outlives the result. `path` is used in messages.
  DeviceLibrary(const TeletensorDeviceTable* table, const std::string& path);

  const TeletensorDeviceTable& table() const { return table_; }
  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  // Null if the library has no kernel for the operator.
  const TeletensorDeviceOperator* find(uint16_t op) const {
    const auto found = operators_.find(op);
    return found == operators_.end() ? nullptr : &found->second;
  }

  // Calls a function of the table with `args` and the error to fill. Returns its status; an exception counts as
  // TELETENSOR_DEVICE_FAILED. `message` is its message, or a text if it has none.
  template <typename Function, typename... Arguments>
  int32_t try_call(std::string_view what, std::string* message, Function function, Arguments... args) const {
    std::array<char, kMessageBytes> text{};
    TeletensorDeviceError error{text.data(), text.size()};
    int32_t status = TELETENSOR_DEVICE_FAILED;
    try {
      status = function(args..., &error);
      text.back() = 0;
    } catch (const std::exception& thrown) {
      *message = describe(what, thrown.what());
      return TELETENSOR_DEVICE_FAILED;
    } catch (...) {
      *message = describe(what, "the library threw an exception");
      return TELETENSOR_DEVICE_FAILED;
    }
    if (status != TELETENSOR_DEVICE_OK) *message = describe(what, text.data());
    return status;
  }
  // The same; throws Error (RuntimeError or OutOfMemoryError) unless the status is TELETENSOR_DEVICE_OK.
  template <typename Function, typename... Arguments>
  void call(std::string_view what, Function function, Arguments... args) const {
    std::string message;
    const int32_t status = try_call(what, &message, function, args...);
    if (status == TELETENSOR_DEVICE_OK) [[likely]]
      return;
    throw Error(status == TELETENSOR_DEVICE_NO_MEMORY ? ErrorKind::kOutOfMemory : ErrorKind::kRuntime, message);
  }

  // Segments of the library's devices. add() throws Error if the segment's address is unusable: zero, not a multiple of
  // 64, beyond 2^63 - 1, or within another segment.
  void add_segment(int device, void* address, uint64_t bytes);
  void remove_segment(void* address);
  // The device whose memory contains all the bytes; -1: none. Throws Error if only a part of them is a device's.
  int device_of(const void* p, size_t bytes) const;

  // Counts calls.
  void count_kernel(int device) {
    counters_[static_cast<size_t>(device)].kernels.fetch_add(1, std::memory_order_relaxed);
  }
  void count_fallback(int device, std::string_view op);
  BackendCalls calls(int device) const;

 private:
  static constexpr size_t kMessageBytes = 512;
  struct Counters {
    std::atomic<uint64_t> kernels{0}, fallbacks{0};
  };
  struct Segment {
    uint64_t bytes;
    int device;
  };

  std::string describe(std::string_view what, std::string_view text) const;
  void check_functions(const std::string& path) const;
  void find_operators(const std::string& path);

  const TeletensorDeviceTable& table_;
  std::string name_, version_;
  absl::flat_hash_map<uint16_t, TeletensorDeviceOperator> operators_;
  std::array<Counters, kMaxPluginDevices> counters_;
  mutable Mutex mutex_;
  std::map<uintptr_t, Segment> segments_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, uint64_t> fallbacks_[kMaxPluginDevices] ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::plugin
