// CuptiRecords: what CUPTI reported since the first of the running traces began. Owned by the tracer (cupti.cc). Not
// thread-safe. Requires cupti.h.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/device/device_tracer.h"
#include "kernels/cuda/libraries/cupti_library.h"

namespace tt::cuda {

class CuptiRecords {
 public:
  // Of the external ids: trace << 32 | launch.
  static constexpr CUpti_ExternalCorrelationKind kExternalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

  // Adds a record of any kind. Records that exceed `limit` are counted as dropped.
  void add(const Cupti& cupti, const CUpti_Activity* record, size_t limit);
  void add_dropped(size_t count) { dropped_ += count; }
  uint64_t dropped() const { return dropped_; }
  size_t host_bytes() const;
  // Moves the activities of a trace to `out`. Discards the activities of no trace if `is_last`.
  void take(uint32_t trace, bool is_last, std::vector<DeviceActivity>* out);
  // Of kernels as their symbols, which may have to be demangled.
  const std::vector<std::string>& names() const { return names_; }

 private:
  void add_call(const Cupti& cupti, CUpti_CallbackDomain domain, const CUpti_ActivityAPI& record);
  void add_work(const DeviceActivity& activity, size_t limit);
  template <typename Record>
  DeviceActivity placed(const Record& record, DeviceActivity::Kind kind, const std::string& name);
  uint32_t name_index(const std::string& name);

  absl::flat_hash_map<uint32_t, uint64_t> launches_;     // external ids by correlation id
  absl::flat_hash_map<uint32_t, DeviceActivity> calls_;  // by correlation id
  std::vector<DeviceActivity> work_;
  absl::flat_hash_map<std::string, uint32_t> name_indices_;
  std::vector<std::string> names_;
  uint64_t dropped_ = 0;
};

}  // namespace tt::cuda
