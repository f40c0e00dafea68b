#include "kernels/cuda/runtime/tracer.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "engine/schema/error.h"
#include "kernels/cuda/runtime/event_tracer.h"

namespace tt::cuda {
namespace {

thread_local int depth = 0;
thread_local std::vector<DeviceTracer*> open_tracers;  // that the thread's begin_launches() used

// Uses CUPTI, or CUDA events for a trace for which CUPTI is not available. The numbers of the latter's traces are odd.
class CudaTracer final : public DeviceTracer {
 public:
  explicit CudaTracer(const TracerOptions& options) : cupti_(make_cupti_tracer(options)) {}

  uint32_t start(uint64_t max_activities) override {
    try {
      return 2 * cupti_->start(max_activities);
    } catch (const Error& error) {
      const uint32_t trace = 2 * events_.start(max_activities) + 1;
      MutexLock lock(mutex_);
      reasons_[trace] = error.message();
      return trace;
    }
  }
  void begin_launches(uint32_t trace, uint32_t launch) noexcept override {
    open_tracers.push_back(&tracer_of(trace));
    open_tracers.back()->begin_launches(trace / 2, launch);
  }
  void end_launches() noexcept override {
    open_tracers.back()->end_launches();
    open_tracers.pop_back();
  }
  DeviceTrace stop(uint32_t trace) override {
    DeviceTrace result = tracer_of(trace).stop(trace / 2);
    MutexLock lock(mutex_);
    if (const auto reason = reasons_.find(trace); reason != reasons_.end()) {
      result.notice = absl::StrCat(reason->second, ". GPU times are those of CUDA events around each launch");
      reasons_.erase(reason);
    }
    return result;
  }
  uint64_t host_bytes() const override { return cupti_->host_bytes() + events_.host_bytes(); }

 private:
  DeviceTracer& tracer_of(uint32_t trace) {
    if (trace % 2 == 1) return events_;
    return *cupti_;
  }

  const std::unique_ptr<DeviceTracer> cupti_;
  EventTracer events_;
  Mutex mutex_;
  std::map<uint32_t, std::string> reasons_ ABSL_GUARDED_BY(mutex_);  // why CUPTI is not used, by trace
};

}  // namespace

std::unique_ptr<DeviceTracer> make_tracer(const TracerOptions& options) {
  return std::make_unique<CudaTracer>(options);
}

bool is_traced() { return depth > 0; }
void enter_traced() { ++depth; }
void leave_traced() { --depth; }

}  // namespace tt::cuda
