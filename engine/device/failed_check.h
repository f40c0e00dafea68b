// FailedCheck: a failed internal check (an index outside a list, an integer division that traps) as an exception.
//
// Such a check ends the process with SIGILL or SIGFPE. In code that is pure, as operators' rules are, a process that
// called recover_from_failed_checks() goes on instead: the session whose work it was ends, others are not concerned.
// Kernels are not covered: they hold locks and run on several threads.
#pragma once

#include <exception>

#include "absl/functional/function_ref.h"

namespace tt {

class FailedCheck final : public std::exception {
 public:
  const char* what() const noexcept override { return "a check inside the engine failed"; }
};

// Installs the process's handlers of SIGILL and SIGFPE. Called once, at start, by a daemon; not by a library in
// somebody else's process.
void recover_from_failed_checks();

// Runs `pure`; throws FailedCheck where a check in it fails, and what it throws itself. Requires that `pure` holds no
// lock, starts no thread and owns nothing but memory: destructors of what it had made do not run, so that memory is
// lost. Any thread; calls nest. Costs some nanoseconds, nothing but the call where recover_from_failed_checks() was not
// called.
void run_recoverably(absl::FunctionRef<void()> pure);

}  // namespace tt
