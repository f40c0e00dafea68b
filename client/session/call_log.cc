#include "client/session/call_log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace tt::client {
namespace {

thread_local uint64_t begun = 0;  // when the thread began its current call; 0: not known

}  // namespace

uint64_t CallLog::now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

uint64_t CallLog::thread_number() {
  thread_local const auto number = static_cast<uint64_t>(syscall(SYS_gettid));
  return number;
}

void CallLog::start(size_t max_calls) {
  const MutexLock lock(mutex_);
  calls_.clear();
  max_calls_ = max_calls;
  active_.store(true, std::memory_order_relaxed);
}

std::vector<IssuedCall> CallLog::stop() {
  const MutexLock lock(mutex_);
  active_.store(false, std::memory_order_relaxed);
  return std::exchange(calls_, {});
}

void CallLog::begin() { begun = now(); }

void CallLog::add(uint16_t op, uint32_t site) {
  const uint64_t end = now(), start = std::exchange(begun, 0);
  IssuedCall call;
  call.start = start == 0 ? end : start;
  call.duration = end - call.start;
  call.thread = thread_number();
  call.site = site;
  call.op = op;
  const MutexLock lock(mutex_);
  if (calls_.size() < max_calls_) calls_.push_back(call);
}

}  // namespace tt::client
