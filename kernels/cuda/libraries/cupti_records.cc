#if __has_include(<cupti.h>)

#include "kernels/cuda/libraries/cupti_records.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tt::cuda {
namespace {

// Newer versions append members to the records, which begin as below in versions 12.4 and 13.0; others were not
// compared.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using FillRecord = CUpti_ActivityMemset4;
using CallRecord = CUpti_ActivityAPI;
using ExternalRecord = CUpti_ActivityExternalCorrelation;
static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, gridX) == 52 &&
              offsetof(KernelRecord, correlationId) == 92 && offsetof(KernelRecord, name) == 104);
static_assert(offsetof(CopyRecord, start) == 16 && offsetof(CopyRecord, correlationId) == 44);
static_assert(offsetof(PeerCopyRecord, start) == 16 && offsetof(PeerCopyRecord, correlationId) == 60);
static_assert(offsetof(FillRecord, start) == 16 && offsetof(FillRecord, correlationId) == 44);
static_assert(offsetof(ExternalRecord, externalId) == 8 && offsetof(ExternalRecord, correlationId) == 16);

const char* memory_name(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return "Pageable";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return "Pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE: return "Device";
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY: return "Array";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED: return "Managed";
    default: return "Unknown";
  }
}

// As PyTorch's traces name copies: "Memcpy HtoD (Pinned -> Device)".
std::string copy_name(uint8_t kind, uint8_t from, uint8_t to) {
  const auto direction = [&] {
    switch (kind) {
      case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "HtoD";
      case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "DtoH";
      case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "DtoD";
      case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "HtoH";
      case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "PtoP";
      default: return "Unknown";
    }
  };
  return absl::StrCat("Memcpy ", direction(), " (", memory_name(from), " -> ", memory_name(to), ")");
}

void set_shape(const KernelRecord& record, DeviceActivity* activity) {
  const int32_t grid[] = {record.gridX, record.gridY, record.gridZ};
  const int32_t block[] = {record.blockX, record.blockY, record.blockZ};
  std::copy_n(grid, 3, activity->grid);
  std::copy_n(block, 3, activity->block);
  activity->registers = record.registersPerThread;
  activity->static_shared = static_cast<uint32_t>(record.staticSharedMemory);
  activity->dynamic_shared = static_cast<uint32_t>(record.dynamicSharedMemory);
}

}  // namespace

void CuptiRecords::add(const Cupti& cupti, const CUpti_Activity* record, size_t limit) {
  const auto add_copy = [&](const auto& copy) {
    DeviceActivity activity = placed(copy, DeviceActivity::kCopy, copy_name(copy.copyKind, copy.srcKind, copy.dstKind));
    activity.bytes = copy.bytes;
    add_work(activity, limit);
  };
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& external = *reinterpret_cast<const ExternalRecord*>(record);
      if (external.externalKind == kExternalKind && launches_.size() < 2 * limit) {
        launches_[external.correlationId] = external.externalId;
      }
      return;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return add_call(cupti, CUPTI_CB_DOMAIN_RUNTIME_API, *reinterpret_cast<const CallRecord*>(record));
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return add_call(cupti, CUPTI_CB_DOMAIN_DRIVER_API, *reinterpret_cast<const CallRecord*>(record));
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = *reinterpret_cast<const KernelRecord*>(record);
      DeviceActivity activity =
          placed(kernel, DeviceActivity::kKernel, kernel.name == nullptr ? "a kernel without a name" : kernel.name);
      set_shape(kernel, &activity);
      return add_work(activity, limit);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: return add_copy(*reinterpret_cast<const CopyRecord*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return add_copy(*reinterpret_cast<const PeerCopyRecord*>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = *reinterpret_cast<const FillRecord*>(record);
      const char* const memory = memory_name(static_cast<uint8_t>(fill.memoryKind));
      DeviceActivity activity = placed(fill, DeviceActivity::kFill, absl::StrCat("Memset (", memory, ")"));
      activity.bytes = fill.bytes;
      return add_work(activity, limit);
    }
    default: return;
  }
}

size_t CuptiRecords::host_bytes() const {
  return (work_.capacity() + calls_.capacity()) * sizeof(DeviceActivity) + launches_.capacity() * 2 * sizeof(uint64_t);
}

void CuptiRecords::take(uint32_t trace, bool is_last, std::vector<DeviceActivity>* out) {
  std::vector<DeviceActivity> others;
  for (DeviceActivity& activity : work_) {
    const auto launch = launches_.find(activity.correlation);
    if (launch == launches_.end() || launch->second >> 32 != trace) {
      if (!is_last) others.push_back(activity);
      continue;
    }
    activity.launch = static_cast<uint32_t>(launch->second);
    out->push_back(activity);
    // One call may launch several kernels, such as those of a graph.
    if (const auto call = calls_.find(activity.correlation); call != calls_.end()) {
      out->push_back(call->second);
      out->back().launch = activity.launch;
      calls_.erase(call);
    }
  }
  work_ = std::move(others);
}

// Keeps calls of traced threads only: their external record precedes them. A driver's call within a runtime's call has
// the same correlation id; the outer one is kept.
void CuptiRecords::add_call(const Cupti& cupti, CUpti_CallbackDomain domain, const CUpti_ActivityAPI& record) {
  if (!launches_.contains(record.correlationId)) return;
  const auto [at, is_new] = calls_.try_emplace(record.correlationId);
  DeviceActivity& call = at->second;
  if (!is_new && record.start >= call.start) return;
  const char* name = nullptr;
  if (cupti.callback_name(domain, record.cbid, &name) != CUPTI_SUCCESS || name == nullptr) name = "CUDA API";
  call.kind = DeviceActivity::kCall;
  call.start = record.start;
  call.end = record.end;
  call.correlation = record.correlationId;
  call.name = name_index(name);
}

void CuptiRecords::add_work(const DeviceActivity& activity, size_t limit) {
  if (activity.start == 0 || activity.end == 0 || work_.size() >= limit) {
    ++dropped_;  // CUPTI had no memory for its times, or the limit is exceeded
  } else {
    work_.push_back(activity);
  }
}

template <typename Record>
DeviceActivity CuptiRecords::placed(const Record& record, DeviceActivity::Kind kind, const std::string& name) {
  DeviceActivity activity;
  activity.kind = kind;
  activity.start = record.start;
  activity.end = record.end;
  activity.correlation = record.correlationId;
  activity.device = record.deviceId;
  activity.context = record.contextId;
  activity.stream = record.streamId;
  activity.name = name_index(name);
  return activity;
}

uint32_t CuptiRecords::name_index(const std::string& name) {
  const auto [at, is_new] = name_indices_.try_emplace(name, static_cast<uint32_t>(names_.size()));
  if (is_new) names_.push_back(name);
  return at->second;
}

}  // namespace tt::cuda

#endif
