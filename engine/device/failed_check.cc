#include "engine/device/failed_check.h"

#include <csetjmp>
#include <csignal>

namespace tt {
namespace {

bool recovering = false;                                   // set before threads start
constinit thread_local sigjmp_buf* jump_target = nullptr;  // jump target of the innermost run_with_check_recovery()

void on_failed_check(int signal) {
  if (sigjmp_buf* to = jump_target) {
    jump_target = nullptr;
    siglongjmp(*to, 1);
  }
  std::signal(signal, SIG_DFL);  // the instruction fails again and ends the process
}

// Restores the enclosing jump target on every exit from the scope.
class JumpTargetScope {
 public:
  explicit JumpTargetScope(sigjmp_buf* own) : outer_(jump_target) { jump_target = own; }
  ~JumpTargetScope() { jump_target = outer_; }
  JumpTargetScope(const JumpTargetScope&) = delete;
  JumpTargetScope& operator=(const JumpTargetScope&) = delete;

 private:
  sigjmp_buf* const outer_;
};

}  // namespace

void recover_from_failed_checks() {
  struct sigaction action = {};
  action.sa_handler = &on_failed_check;
  action.sa_flags = SA_NODEFER;  // the jump does not return to the handler, and the signal mask is not saved
  sigaction(SIGILL, &action, nullptr);
  sigaction(SIGFPE, &action, nullptr);
  recovering = true;
}

void run_with_check_recovery(absl::FunctionRef<void()> pure) {
  if (!recovering) return pure();
  sigjmp_buf here;
  JumpTargetScope scope(&here);
  // Does not save the signal mask: that would be a system call.
  if (sigsetjmp(here, 0) != 0) throw FailedCheck();
  pure();
}

}  // namespace tt
