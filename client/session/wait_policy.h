// WaitPolicy: what a call does that would wait for a value, a size that depends on data, or an upload; and whether
// calls wait for their errors.
//
// The policy does not concern waits for the engine to catch up with queued calls, those for errors, and
// Session::synchronize().
#pragma once

#include <cstdint>
#include <string>

namespace tt::client {

enum class WaitPolicy : uint8_t { kAllow, kWarn, kRaise };

// Sets the policy of all threads, and returns the earlier one.
WaitPolicy set_wait_policy(WaitPolicy policy);
WaitPolicy wait_policy();
// Sets the policy of the calling thread, and returns the earlier one. The stricter of the two policies applies.
WaitPolicy set_thread_wait_policy(WaitPolicy policy);

// Makes every call of all threads, or of the calling thread, wait until it is known whether it has failed: `count` is
// added to the number of reasons to do so.
void add_error_waits(int count);
void add_thread_error_waits(int count);
bool waits_for_errors();

// Whether the policy is other than kAllow for the calling thread.
bool restricts_waits();
// Applies the policy to a wait at a line of the program ("train.py:12 in step"; may be empty). Throws Error (kRuntime)
// or Interrupted, if the language turned the warning into an exception.
void apply_wait_policy(const std::string& where);

}  // namespace tt::client
