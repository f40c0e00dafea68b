#include "tests/cuda/simulated/cupti.h"

#include "tests/cuda/simulated/loader.h"

#if __has_include(<cupti.h>)

#include <cupti.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tt::cuda {
namespace {

// As a thread of CUPTI's that delivers buffers late: up to this many full buffers wait.
constexpr size_t kMaxWaiting = 8;

thread_local std::vector<uint64_t> external_ids;

bool is_configured(std::string_view value) {
  const char* const text = std::getenv("TELETENSOR_SIMULATED_CUPTI");
  return text != nullptr && value == text;
}

// The state of the library. Guarded by its mutex, which callbacks may lock again.
class Library {
 public:
  static Library& instance() {
    static auto* const library = new Library;  // simulated work may run until the process ends
    return *library;
  }

  std::recursive_mutex mutex;
  std::set<CUpti_ActivityKind> enabled;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc clock = nullptr;
  uint32_t next_correlation = 1;
  size_t dropped = 0;

  uint64_t now() const { return clock == nullptr ? 0 : clock(); }

  // Host calls and device work are written to different buffers.
  template <typename Record>
  void write(const Record& record, bool is_call) {
    if (!enabled.contains(record.kind)) return;
    Buffer& buffer = is_call ? calls_ : work_;
    if (buffer.data != nullptr && buffer.used + sizeof record > buffer.size) retire(buffer);
    if (buffer.data == nullptr) {
      size_t max_records = 0;
      request(&buffer.data, &buffer.size, &max_records);
    }
    if (buffer.data == nullptr) {
      ++dropped;
      return;
    }
    std::memcpy(buffer.data + buffer.used, &record, sizeof record);
    buffer.used += sizeof record;
  }

  void flush() {
    retire(calls_);
    retire(work_);
    deliver(0);
  }

 private:
  struct Buffer {
    uint8_t* data = nullptr;
    size_t size = 0, used = 0;
  };

  void retire(Buffer& buffer) {
    if (buffer.data != nullptr) full_.push_back(buffer);
    buffer = {};
    deliver(kMaxWaiting);
  }
  void deliver(size_t waiting) {
    while (full_.size() > waiting) {
      const Buffer buffer = full_.front();
      full_.pop_front();
      complete(nullptr, 0, buffer.data, buffer.size, buffer.used);
    }
  }

  Buffer calls_, work_;
  std::deque<Buffer> full_;
};

using Lock = std::lock_guard<std::recursive_mutex>;

size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_RUNTIME: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    default: return 0;
  }
}

CUptiResult CUPTIAPI get_version(uint32_t* version) {
  *version = is_configured("old") ? 14 : CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI get_result_string(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_UNKNOWN";
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI get_callback_name(CUpti_CallbackDomain domain, uint32_t callback, const char** name) {
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API) return CUPTI_ERROR_INVALID_PARAMETER;
  constexpr const char* kNames[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync"};
  if (callback >= std::size(kNames)) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = kNames[callback];
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI register_clock(CUpti_TimestampCallbackFunc function) {
  const Lock lock(Library::instance().mutex);
  if (!Library::instance().enabled.empty()) return CUPTI_ERROR_INVALID_OPERATION;  // stricter than the real one
  Library::instance().clock = function;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI register_callbacks(CUpti_BuffersCallbackRequestFunc request,
                                        CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const Lock lock(Library::instance().mutex);
  Library::instance().request = request;
  Library::instance().complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI enable(CUpti_ActivityKind kind) {
  const Lock lock(Library::instance().mutex);
  if (Library::instance().complete == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  if (is_configured("refused") && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  }
  Library::instance().enabled.insert(kind);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI disable(CUpti_ActivityKind kind) {
  const Lock lock(Library::instance().mutex);
  Library::instance().enabled.erase(kind);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI flush_all(uint32_t) {
  const Lock lock(Library::instance().mutex);
  Library::instance().flush();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* next = buffer;
  if (*record != nullptr) next = reinterpret_cast<uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return size_of((*record)->kind) == 0 ? CUPTI_ERROR_INVALID_KIND : CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI dropped_records(CUcontext, uint32_t, size_t* dropped) {
  const Lock lock(Library::instance().mutex);
  *dropped = std::exchange(Library::instance().dropped, 0);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI push_id(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  if (kind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) return CUPTI_ERROR_INVALID_PARAMETER;
  external_ids.push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI pop_id(CUpti_ExternalCorrelationKind, uint64_t* last) {
  if (external_ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  *last = external_ids.back();
  external_ids.pop_back();
  return CUPTI_SUCCESS;
}

// Writes the records of a call, preceded by its external id, and returns its correlation id.
uint32_t report_call(Library& library, const SimulatedWork& what) {
  const uint32_t correlation = library.next_correlation++;
  if (!external_ids.empty()) {
    CUpti_ActivityExternalCorrelation external{};
    external.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    external.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    external.externalId = external_ids.back();
    external.correlationId = correlation;
    library.write(external, /*is_call=*/true);
  }
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.cbid = static_cast<CUpti_CallbackId>(what.kind);
  call.start = library.now();
  call.end = call.start + 1;
  call.correlationId = correlation;
  library.write(call, /*is_call=*/true);
  return correlation;
}

// Sets the members that all records of work have.
template <typename Record>
Record placed(CUpti_ActivityKind kind, const SimulatedWork& what, uint32_t correlation, uint64_t start, uint64_t end) {
  Record record{};
  record.kind = kind;
  record.start = start;
  record.end = end;
  record.deviceId = static_cast<uint32_t>(what.device);
  record.contextId = static_cast<uint32_t>(what.device) + 1;
  record.streamId = what.stream;
  record.correlationId = correlation;
  return record;
}

void report_work(Library& library, const SimulatedWork& what, uint32_t correlation, const char* name, uint64_t start) {
  const uint64_t end = library.now() + 1;
  switch (what.kind) {
    case SimulatedWork::kCopy: {
      auto copy = placed<CUpti_ActivityMemcpy5>(CUPTI_ACTIVITY_KIND_MEMCPY, what, correlation, start, end);
      copy.bytes = what.bytes;
      copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
      copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
      copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
      return library.write(copy, /*is_call=*/false);
    }
    case SimulatedWork::kFill: {
      auto fill = placed<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, what, correlation, start, end);
      fill.bytes = what.bytes;
      fill.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
      return library.write(fill, /*is_call=*/false);
    }
    case SimulatedWork::kKernel: {
      auto kernel = placed<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, what, correlation, start, end);
      kernel.name = name;
      kernel.gridX = 2;
      kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
      kernel.blockX = 32;
      kernel.registersPerThread = 24;
      kernel.staticSharedMemory = 128;
      return library.write(kernel, /*is_call=*/false);
    }
  }
}

}  // namespace

std::function<void()> traced(std::function<void()> work, const SimulatedWork& what) {
  Library& library = Library::instance();
  const Lock lock(library.mutex);
  if (library.enabled.empty()) return work;
  const char* const name = work.target_type().name();  // mangled, as the name of a real kernel
  return [&library, what, name, correlation = report_call(library, what), work = std::move(work)] {
    const uint64_t start = library.now();
    work();
    const Lock lock(library.mutex);
    report_work(library, what, correlation, name, start);
  };
}

const LibraryFunctions& simulated_cupti() {
  static const LibraryFunctions functions = {
      {"cuptiActivityDisable", entry<decltype(&cuptiActivityDisable)>(&disable)},
      {"cuptiActivityEnable", entry<decltype(&cuptiActivityEnable)>(&enable)},
      {"cuptiActivityFlushAll", entry<decltype(&cuptiActivityFlushAll)>(&flush_all)},
      {"cuptiActivityGetNextRecord", entry<decltype(&cuptiActivityGetNextRecord)>(&next_record)},
      {"cuptiActivityGetNumDroppedRecords", entry<decltype(&cuptiActivityGetNumDroppedRecords)>(&dropped_records)},
      {"cuptiActivityPopExternalCorrelationId", entry<decltype(&cuptiActivityPopExternalCorrelationId)>(&pop_id)},
      {"cuptiActivityPushExternalCorrelationId", entry<decltype(&cuptiActivityPushExternalCorrelationId)>(&push_id)},
      {"cuptiActivityRegisterCallbacks", entry<decltype(&cuptiActivityRegisterCallbacks)>(&register_callbacks)},
      {"cuptiActivityRegisterTimestampCallback",
       entry<decltype(&cuptiActivityRegisterTimestampCallback)>(&register_clock)},
      {"cuptiGetCallbackName", entry<decltype(&cuptiGetCallbackName)>(&get_callback_name)},
      {"cuptiGetResultString", entry<decltype(&cuptiGetResultString)>(&get_result_string)},
      {"cuptiGetVersion", entry<decltype(&cuptiGetVersion)>(&get_version)},
  };
  return functions;
}

}  // namespace tt::cuda

#else  // no toolkit: nothing is traced

namespace tt::cuda {

std::function<void()> traced(std::function<void()> work, const SimulatedWork&) { return work; }

const LibraryFunctions& simulated_cupti() {
  static const LibraryFunctions none;
  return none;
}

}  // namespace tt::cuda

#endif
