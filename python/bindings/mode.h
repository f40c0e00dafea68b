// What the calling thread asks of every operator call: grad mode, inference mode, mixed precision, its source line.
#pragma once

#include <cstdint>
#include <optional>

#include "client/session.h"

namespace tt::python {

struct Mode {
  bool grad = true;
  bool inference = false;
  // The lower precision on CPUs and on GPUs, where autocast is on.
  std::optional<DType> autocast_cpu, autocast_cuda;

  bool autocast() const { return autocast_cpu || autocast_cuda; }
  std::optional<DType> autocast_dtype(DeviceType device) const {
    return device == DeviceType::kCUDA ? autocast_cuda : device == DeviceType::kCPU ? autocast_cpu : std::nullopt;
  }
  static Mode& current();  // the thread's own
};

// The session that calls without a tensor go to; starts or joins an engine when there is none
// yet (teletensor.connect()). Throws.
client::Session& current_session();
void set_current_session(Ref<client::Session> session);  // null: none

// The device, which the session's engine has. Throws Error (RuntimeError) where it has no such GPU.
// `session`: null for the current one.
Device present_device(Device device, client::Session* session);

// The session's number for the innermost Python line outside this package.
uint32_t current_site(client::Session& session);

// Options of an ordinary call from this thread.
inline client::CallOptions call_options(client::Session& session) {
  const Mode& mode = Mode::current();
  return {.grad = mode.grad, .inference = mode.inference, .site = current_site(session)};
}

}  // namespace tt::python
