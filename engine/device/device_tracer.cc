#include "engine/device/device_tracer.h"

#include <atomic>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"

namespace tt {
namespace {

std::atomic<DeviceTracer*> the_tracer{nullptr};
std::atomic<size_t> trace_count{0};  // size of the map, to be read without the lock

struct Traces {
  Mutex mutex;
  absl::flat_hash_map<const void*, uint32_t> by_account ABSL_GUARDED_BY(mutex);
};

Traces& traces() {
  static auto* const traces = new Traces;  // never destroyed: transfers may outlive main
  return *traces;
}

bool begin_copies(uint32_t trace) {
  if (trace != 0) device_tracer()->begin_launches(trace, UINT32_MAX);
  return trace != 0;
}

}  // namespace

DeviceTracer* device_tracer() { return the_tracer; }
void set_device_tracer(DeviceTracer* tracer) { the_tracer = tracer; }

void set_trace_of(const void* account, uint32_t trace) {
  if (account == nullptr) return;
  MutexLock lock(traces().mutex);
  if (trace == 0) {
    traces().by_account.erase(account);
  } else {
    traces().by_account[account] = trace;
  }
  trace_count = traces().by_account.size();
}

uint32_t trace_of(const void* account) {
  if (trace_count == 0) [[likely]]
    return 0;
  MutexLock lock(traces().mutex);
  const auto found = traces().by_account.find(account);
  return found == traces().by_account.end() ? 0 : found->second;
}

TracedCopies::TracedCopies(const void* account) : traced_(begin_copies(trace_of(account))) {}

TracedCopies::~TracedCopies() {
  if (traced_) device_tracer()->end_launches();
}

}  // namespace tt
