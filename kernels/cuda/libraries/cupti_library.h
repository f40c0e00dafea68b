// Cupti: NVIDIA's profiling library, opened at run time. Owned by the tracer (cupti.cc), which opens it when the first
// trace starts. Requires cupti.h.
#pragma once

#include <cupti.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "kernels/cuda/libraries/library.h"

namespace tt::cuda {

struct Cupti {
  // The library of the toolkit's version comes first: version 13 requires a driver of version 13.
  static constexpr const char* kNewer = CUDA_VERSION >= 13000 ? "libcupti.so.13" : "libcupti.so.12";
  static constexpr const char* kOther = CUDA_VERSION >= 13000 ? "libcupti.so.12" : "libcupti.so.13";
  static constexpr const char* kInstalled = "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so";
  // cuptiGetVersion() is 19 to 28 in CUDA 12.0 to 12.9, and 130000 and more in CUDA 13.
  static constexpr uint32_t kFirst12 = 19, kEnd12 = 100, kFirst13 = 130000, kEnd13 = 140000;

  Library library{"CUPTI", {kNewer, kOther, kInstalled}};
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records;
  decltype(&cuptiActivityPushExternalCorrelationId) push_id;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_id;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock;
  decltype(&cuptiGetCallbackName) callback_name;
  decltype(&cuptiGetResultString) result_string;

  // Throws Error (RuntimeError) if the library is missing, of an unknown version or incomplete.
  void find() {
    check(static_cast<bool>(library), "GPU events need CUPTI, which cannot be opened: ", library.why());
    library.find(enable, "cuptiActivityEnable");
    library.find(disable, "cuptiActivityDisable");
    library.find(flush_all, "cuptiActivityFlushAll");
    library.find(next_record, "cuptiActivityGetNextRecord");
    library.find(dropped_records, "cuptiActivityGetNumDroppedRecords");
    library.find(push_id, "cuptiActivityPushExternalCorrelationId");
    library.find(pop_id, "cuptiActivityPopExternalCorrelationId");
    library.find(register_callbacks, "cuptiActivityRegisterCallbacks");
    library.find(register_clock, "cuptiActivityRegisterTimestampCallback");
    library.find(callback_name, "cuptiGetCallbackName");
    library.find(result_string, "cuptiGetResultString");
    decltype(&cuptiGetVersion) version;
    library.find(version, "cuptiGetVersion");
    uint32_t number = 0;
    must("cuptiGetVersion", version(&number));
    library.record_version(absl::StrCat(number));
    check((number >= kFirst12 && number < kEnd12) || (number >= kFirst13 && number < kEnd13),
          "GPU events need CUPTI of CUDA 12 or 13, found API version ", number);
  }
  void must(const char* call, CUptiResult result) const {
    if (result == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    result_string(result, &text);
    fail(ErrorKind::kRuntime, "GPU events are not available: ", text == nullptr ? "an unknown error" : text, " (",
         static_cast<int>(result), ", from ", call, ")", advice(result));
  }
  static const char* advice(CUptiResult result) {
    switch (result) {
      case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        return "; the driver restricts profiling to administrators (ERR_NVGPUCTRPERM, "
               "NVreg_RestrictProfilingToAdminUsers)";
      case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: return "; another profiler observes the engine";
      default: return "";
    }
  }
};

}  // namespace tt::cuda
