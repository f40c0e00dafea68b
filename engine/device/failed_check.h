// FailedCheck: a failed internal check (an index outside a list, an integer division that traps) as an exception.
//
// Such a check raises SIGILL or SIGFPE, which would end the process. If the process called recover_from_failed_checks()
// and the check is in pure code, such as an operator's rules, the process continues and only the session that was
// executing ends. Kernels are not covered, because they hold locks and run on several threads.
#pragma once

#include <exception>

#include "absl/functional/function_ref.h"

namespace tt {

class FailedCheck final : public std::exception {
 public:
  const char* what() const noexcept override { return "a check inside the engine failed"; }
};

// Installs the process's handlers for SIGILL and SIGFPE. A daemon calls it once, at start; a library in another process
// must not.
void recover_from_failed_checks();

// Runs `pure`; throws FailedCheck if a check in it fails, and propagates its exceptions. Requires that `pure` holds no
// lock, starts no thread and owns only memory: after a failed check, destructors do not run, so that memory is leaked.
// Any thread; calls may nest. Takes a few nanoseconds; without recover_from_failed_checks(), only calls `pure`.
void run_with_check_recovery(absl::FunctionRef<void()> pure);

}  // namespace tt
