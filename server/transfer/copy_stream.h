// CopyStream: the streams of a session's copies in one direction, beside the one that it computes in.
//
// Shared by the session and its transfers. Thread-safe: transfers take turns at issuing, for moments.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "engine/session/context.h"
#include "engine/tensor/storage.h"

namespace tt::server {

class CopyStream {
 public:
  explicit CopyStream(std::shared_ptr<Account> account) { context_.account = std::move(account); }

  // Calls `issue` with the lane's stream on `device`, which is leased at first use.
  void with_stream(Device device, absl::FunctionRef<void(Stream&)> issue) {
    MutexLock lock(mutex_);
    issue(context_.stream(device));
  }
  // Memory that the account pays for, free to be used in the lane's order.
  Ref<Storage> allocate(Device device, size_t bytes) {
    MutexLock lock(mutex_);
    ContextScope scope(&context_);
    return make_ref<Storage>(device, bytes);
  }

 private:
  Mutex mutex_;
  Context context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::server
