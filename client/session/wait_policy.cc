#include "client/session/wait_policy.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/connection/interruption.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

std::atomic<WaitPolicy> of_process{WaitPolicy::kAllow};
thread_local WaitPolicy of_thread = WaitPolicy::kAllow;
std::atomic<int> error_waits{0};
thread_local int error_waits_of_thread = 0;

WaitPolicy policy_now() { return std::max(of_process.load(std::memory_order_relaxed), of_thread); }

}  // namespace

WaitPolicy set_wait_policy(WaitPolicy policy) { return of_process.exchange(policy); }
WaitPolicy wait_policy() { return of_process.load(); }
WaitPolicy set_thread_wait_policy(WaitPolicy policy) { return std::exchange(of_thread, policy); }

void add_error_waits(int count) { error_waits.fetch_add(count); }
void add_thread_error_waits(int count) { error_waits_of_thread += count; }
bool waits_for_errors() { return error_waits.load(std::memory_order_relaxed) + error_waits_of_thread > 0; }

bool restricts_waits() { return policy_now() != WaitPolicy::kAllow; }

void apply_wait_policy(const std::string& where) {
  const std::string place = where.empty() ? "" : absl::StrCat(" at ", where);
  if (policy_now() == WaitPolicy::kRaise) {
    fail(ErrorKind::kRuntime, "[no_sync] expected no call that waits for the engine, got one", place);
  }
  if (warn(absl::StrCat("[no_sync] a call waits for the engine", place))) throw Interrupted();
}

}  // namespace tt::client
