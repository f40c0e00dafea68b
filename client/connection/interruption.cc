#include "client/connection/interruption.h"

namespace tt::client {
namespace {

WaitHooks installed;

}  // namespace

void install_wait_hooks(const WaitHooks& hooks) { installed = hooks; }

bool is_interruptible() { return installed.interruptible && installed.interruptible(); }
bool warn(const std::string& message) { return installed.warn && installed.warn(message.c_str()); }
bool interrupted() { return installed.interrupted && installed.interrupted(); }

ReleaseInterpreterLock::ReleaseInterpreterLock() : state_(installed.begin_wait ? installed.begin_wait() : nullptr) {}
ReleaseInterpreterLock::~ReleaseInterpreterLock() {
  if (state_) installed.end_wait(state_);
}

}  // namespace tt::client
