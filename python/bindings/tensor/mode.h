// Mode: the calling thread's settings for operator calls: grad mode, inference mode, source line. Its autocast settings
// are client::autocast_settings().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/session/autocast.h"
#include "client/session/saved_tensors.h"
#include "client/session/session.h"

namespace tt::python {

struct Mode {
  bool grad = true;
  bool inference = false;
  uint64_t grad_disabled = 0;  // how often set_grad_enabled(False) was called
  std::vector<std::shared_ptr<client::SavedTensorHooks>> saved_hooks;  // the last one applies
  static Mode& current();                                              // returns the Mode of the calling thread
};

// Returns the session used by calls without a tensor argument. Calls teletensor._connection.connection() if there is
// none yet. Throws.
client::Session& current_session();
void set_current_session(Ref<client::Session> session);  // null: no session

// Opens the session if there is none yet, so that the names of the engine's types of device libraries are known. Does
// nothing if that fails.
void learn_device_types();

// Returns the device. Throws Error (RuntimeError) if the session's engine has no such GPU. A null `session` means the
// current session.
Device checked_device(Device device, client::Session* session);

// Returns the site number (Session::site) of the innermost line of the user's Python code, else of the innermost line
// of Python's standard library, else 0.
uint32_t current_site(client::Session& session);

// Creates a tensor from bytes (Session::upload), at this thread's line and in its inference mode.
client::Tensor upload(client::Session& session, absl::Span<const char> bytes, DType dtype, SizesView sizes,
                      Device device);

// Returns the options of an operator call from this thread.
inline client::CallOptions call_options(client::Session& session) {
  const Mode& mode = Mode::current();
  client::CallOptions options{.grad = mode.grad,
                              .inference = mode.inference,
                              .site = current_site(session),
                              .autocast = client::autocast_settings().state()};
  if (!mode.saved_hooks.empty()) [[unlikely]]
    options.saved = &mode.saved_hooks.back();
  return options;
}

}  // namespace tt::python
