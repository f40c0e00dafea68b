// DeviceTracer by CUPTI's activity API ("CUPTI documentation", Activity API, NVIDIA).
//
// Records of the kernels, copies and fills of the whole process arrive in buffers. Those that an API call of a traced
// thread launched carry that call's correlation id, for which CUPTI reports the external id that begin_launches()
// pushed: trace and launch. stop() joins the two. Records of other sessions are discarded.
#include "kernels/cuda/runtime/tracer.h"

#if __has_include(<cupti.h>)

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "kernels/cuda/libraries/cupti_records.h"

namespace tt::cuda {
namespace {

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                         CUPTI_ACTIVITY_KIND_RUNTIME,
                                         CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET};
constexpr size_t kAlignment = 8;            // of buffers, required by CUPTI
constexpr uint64_t kClockTolerance = 1'000'000'000;  // nanoseconds by which times may lie outside of a trace

uint64_t CUPTIAPI now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// Readable text of a kernel's symbol.
std::string demangled(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : symbol;
  std::free(text);
  return name;
}

// The fixed set of buffers that CUPTI fills. Thread-safe.
class Buffers {
 public:
  explicit Buffers(const TracerOptions& options) : options_(options) {}
  ~Buffers() {
    MutexLock lock(mutex_);
    for (uint8_t* buffer : free_) std::free(buffer);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  size_t bytes() const { return options_.buffer_bytes; }
  // Null if all buffers are in use or memory is exhausted.
  uint8_t* take() {
    MutexLock lock(mutex_);
    if (free_.empty() && made_ < options_.max_buffers) {
      void* const buffer = std::aligned_alloc(kAlignment, options_.buffer_bytes);
      if (buffer == nullptr) return nullptr;
      ++made_;
      return static_cast<uint8_t*>(buffer);
    }
    if (free_.empty()) return nullptr;
    uint8_t* const buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void give_back(uint8_t* buffer) {
    MutexLock lock(mutex_);
    free_.push_back(buffer);
  }
  // Frees the buffers that are not in use.
  void trim() {
    MutexLock lock(mutex_);
    made_ -= free_.size();
    for (uint8_t* buffer : free_) std::free(buffer);
    free_.clear();
  }
  size_t made() const {
    MutexLock lock(mutex_);
    return made_;
  }

 private:
  const TracerOptions options_;
  mutable Mutex mutex_;
  size_t made_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint8_t*> free_ ABSL_GUARDED_BY(mutex_);
};

class CuptiTracer final : public DeviceTracer {
 public:
  explicit CuptiTracer(const TracerOptions& options) : buffers_(options) { instance_ = this; }
  ~CuptiTracer() override { instance_ = nullptr; }

  uint32_t start(uint64_t max_activities) override {
    MutexLock lock(control_);
    open();
    if (traces_.empty()) enable();
    limit_ = std::max<uint64_t>(limit_, max_activities);
    const uint32_t trace = next_trace_++;
    traces_[trace] = {now(), dropped()};
    return trace;
  }

  void begin_launches(uint32_t trace, uint32_t launch) noexcept override {
    enter_traced();
    cupti_->push_id(CuptiRecords::kExternalKind, uint64_t{trace} << 32 | launch);
  }

  void end_launches() noexcept override {
    uint64_t id = 0;
    cupti_->pop_id(CuptiRecords::kExternalKind, &id);
    leave_traced();
  }

  DeviceTrace stop(uint32_t number) override {
    MutexLock lock(control_);
    const Trace trace = traces_.at(number);
    cupti_->flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    size_t lost = 0;
    const bool counted = cupti_->dropped_records(nullptr, 0, &lost) == CUPTI_SUCCESS;
    traces_.erase(number);
    DeviceTrace result;
    {
      MutexLock records_lock(records_mutex_);
      if (counted) records_.add_dropped(lost);
      records_.take(number, traces_.empty(), &result.activities);
      result.dropped = records_.dropped() - trace.dropped;
      result.names = records_.names();
      if (traces_.empty()) records_ = CuptiRecords();
    }
    if (traces_.empty()) disable(std::size(kKinds));
    finish(trace.start, &result);
    return result;
  }

  uint64_t host_bytes() const override {
    MutexLock lock(records_mutex_);
    return records_.host_bytes() + buffers_.made() * buffers_.bytes();
  }

 private:
  struct Trace {
    uint64_t start = 0;
    uint64_t dropped = 0;  // records that were lost before
  };

  void open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_) {
    if (cupti_) return;
    auto made = std::make_unique<Cupti>();
    made->find();
    // Times are then those of the engine's clock. Must precede the first cuptiActivityEnable().
    made->must("cuptiActivityRegisterTimestampCallback", made->register_clock(&now));
    made->must("cuptiActivityRegisterCallbacks", made->register_callbacks(&request_buffer, &complete_buffer));
    cupti_ = std::move(made);
  }

  void enable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_) {
    limit_ = 0;
    for (size_t i = 0; i < std::size(kKinds); ++i) {
      const CUptiResult result = cupti_->enable(kKinds[i]);
      if (result == CUPTI_SUCCESS) continue;
      disable(i);
      cupti_->must("cuptiActivityEnable", result);
    }
  }

  void disable(size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_) {
    for (size_t i = 0; i < count; ++i) cupti_->disable(kKinds[i]);
    buffers_.trim();
  }

  uint64_t dropped() const {
    MutexLock lock(records_mutex_);
    return records_.dropped();
  }

  // Sorts the activities, makes their names readable, and removes those whose times cannot be right.
  static void finish(uint64_t start, DeviceTrace* trace) {
    const uint64_t end = now();
    const size_t removed = std::erase_if(trace->activities, [&](const DeviceActivity& activity) {
      return activity.end < activity.start || activity.start + kClockTolerance < start ||
             activity.end > end + kClockTolerance;
    });
    if (removed > 0) {
      trace->notice = absl::StrCat(removed, " GPU events have times outside of the profile and were left out");
    }
    std::stable_sort(trace->activities.begin(), trace->activities.end(),
                     [](const DeviceActivity& a, const DeviceActivity& b) { return a.start < b.start; });
    std::map<uint32_t, uint32_t> used;  // names of other sessions' kernels are removed
    std::vector<std::string> names;
    for (DeviceActivity& activity : trace->activities) {
      const auto [at, is_new] = used.try_emplace(activity.name, static_cast<uint32_t>(names.size()));
      if (is_new) names.push_back(demangled(trace->names[activity.name]));
      activity.name = at->second;
    }
    trace->names = std::move(names);
  }

  // CUPTI calls these on its own threads, and on a thread that flushes.
  static void CUPTIAPI request_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
    CuptiTracer* const tracer = instance_;
    *buffer = tracer == nullptr ? nullptr : tracer->buffers_.take();
    *size = *buffer == nullptr ? 0 : tracer->buffers_.bytes();
    *max_records = 0;  // as many as fit
  }

  static void CUPTIAPI complete_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
    CuptiTracer* const tracer = instance_;
    if (tracer == nullptr || buffer == nullptr) return;
    tracer->read(buffer, valid);
    tracer->buffers_.give_back(buffer);
  }

  void read(uint8_t* buffer, size_t valid) {
    MutexLock lock(records_mutex_);
    CUpti_Activity* record = nullptr;
    while (valid > 0 && cupti_->next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
      records_.add(*cupti_, record, limit_);
    }
    size_t lost = 0;
    if (cupti_->dropped_records(nullptr, 0, &lost) == CUPTI_SUCCESS) records_.add_dropped(lost);
  }

  static inline std::atomic<CuptiTracer*> instance_{nullptr};  // CUPTI's callbacks have no argument for it

  std::unique_ptr<Cupti> cupti_;  // written once, before the first trace starts
  Buffers buffers_;
  std::atomic<uint64_t> limit_{0};
  Mutex control_;  // acquired before records_mutex_
  uint32_t next_trace_ ABSL_GUARDED_BY(control_) = 1;
  std::map<uint32_t, Trace> traces_ ABSL_GUARDED_BY(control_);
  mutable Mutex records_mutex_;
  CuptiRecords records_ ABSL_GUARDED_BY(records_mutex_);
};

}  // namespace

std::unique_ptr<DeviceTracer> make_cupti_tracer(const TracerOptions& options) {
  return std::make_unique<CuptiTracer>(options);
}

}  // namespace tt::cuda

#else  // a toolkit without CUPTI's headers

#include "engine/schema/error.h"

namespace tt::cuda {
namespace {

class NoTracer final : public DeviceTracer {
 public:
  uint32_t start(uint64_t) override {
    fail(ErrorKind::kRuntime, "GPU events need CUPTI: the plug-in was compiled without its headers");
  }
  void begin_launches(uint32_t, uint32_t) noexcept override {}
  void end_launches() noexcept override {}
  DeviceTrace stop(uint32_t) override { return {}; }
  uint64_t host_bytes() const override { return 0; }
};

}  // namespace

std::unique_ptr<DeviceTracer> make_cupti_tracer(const TracerOptions&) { return std::make_unique<NoTracer>(); }

}  // namespace tt::cuda

#endif
