// OpenBlasCall: a thread's permission to call OpenBLAS.
//
// OpenBLAS 0.3.21 sometimes crashes if more threads call it at once than it was built for (128 in Debian), and each
// session may have a thread that calls it. While an OpenBlasCall exists, its thread is one of at most 96 callers. Any
// thread may create one.
#pragma once

namespace tt::cpu {

class OpenBlasCall {
 public:
  // Waits until fewer than 96 threads hold an OpenBlasCall, or the session's work is cancelled. Meanwhile the thread
  // has no turn (engine/device/fair_queue.h).
  OpenBlasCall();
  ~OpenBlasCall();
  OpenBlasCall(const OpenBlasCall&) = delete;
  OpenBlasCall& operator=(const OpenBlasCall&) = delete;
  // False if the work was cancelled during the wait; OpenBLAS must not be called then.
  explicit operator bool() const { return allowed_; }

 private:
  bool allowed_ = false;
};

}  // namespace tt::cpu
