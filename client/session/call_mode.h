// CallMode: how the calling thread's calls are recorded for backward.
#pragma once

namespace tt::client {

struct CallMode {
  bool grad = true;        // calls are recorded
  bool inference = false;  // results never require grad, and their versions are not counted
};
inline constinit thread_local CallMode call_mode;

}  // namespace tt::client
