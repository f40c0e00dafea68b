// Autocast: mixed precision of the calling thread's calls, as torch.autocast.
//
//   {
//     client::Autocast lower(DeviceType::kCPU);   // bfloat16 on CPUs, float16 on GPUs
//     Tensor loss = ops::cross_entropy(ops::linear(x, w, b), target);
//   }
//   backward({loss}, ...);
//
// The engine casts: each call has its thread's settings (CallOptions::autocast), and a session sends an instruction
// when they differ from those of the calls before. Casts of parameters are kept until the outermost region ends.
#pragma once

#include <optional>

#include "engine/schema/autocast.h"

namespace tt::client {

class Session;

// A thread's settings. The dtypes are kept while autocast is off.
struct AutocastSettings {
  bool cpu_enabled = false, cuda_enabled = false;
  DType cpu_dtype = DType::kBFloat16, cuda_dtype = DType::kFloat16;
  bool cache_enabled = true;
  int nesting = 0;  // regions in progress

  AutocastState state() const {
    return {cpu_enabled ? std::optional(cpu_dtype) : std::nullopt,
            cuda_enabled ? std::optional(cuda_dtype) : std::nullopt, cache_enabled};
  }
  bool& enabled(DeviceType device) { return device == DeviceType::kCUDA ? cuda_enabled : cpu_enabled; }
  DType& dtype(DeviceType device) { return device == DeviceType::kCUDA ? cuda_dtype : cpu_dtype; }
};
AutocastSettings& autocast_settings();  // of the calling thread

// A region. Restores the thread's settings at its end.
class Autocast {
 public:
  // `dtype` is float16 or bfloat16; without it, the thread's. Throws Error (RuntimeError) for another dtype or device.
  explicit Autocast(DeviceType device, std::optional<DType> dtype = std::nullopt, bool enabled = true,
                    bool cache_enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const AutocastSettings before_;
};

// Frees the casts of parameters that the engines keep for this process. Does not wait.
void clear_autocast_cache();
// Called at the end of a thread's outermost region: also turns autocast off in the engines' sessions, which the next
// call in another region turns on again.
void end_autocast_regions() noexcept;

// The sessions whose engines may use autocast. Called by Session.
void add_autocast_session(Session* session);
void remove_autocast_session(Session* session);

}  // namespace tt::client
