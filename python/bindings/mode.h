// What the calling thread asks of every operator call: grad mode, inference mode, its source line.
#pragma once

#include <cstdint>

#include "client/session.h"

namespace tt::python {

struct Mode {
  bool grad = true;
  bool inference = false;
  static Mode& current();  // the thread's own
};

// The session that calls without a tensor go to; starts or joins an engine when there is none
// yet (teletensor.connect()). Throws.
client::Session& current_session();
void set_current_session(Ref<client::Session> session);  // null: none

// The session's number for the innermost Python line outside this package.
uint32_t current_site(client::Session& session);

// Options of an ordinary call from this thread.
inline client::CallOptions call_options(client::Session& session) {
  const Mode& mode = Mode::current();
  return {.grad = mode.grad, .inference = mode.inference, .site = current_site(session)};
}

}  // namespace tt::python
