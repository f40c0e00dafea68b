// CopyStream: a session's streams for copies in one direction, separate from the session's compute streams.
//
// Shared by the session and its transfers. Thread-safe; transfers hold the lock only while they issue a copy.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "engine/device/device_tracer.h"
#include "engine/session/context.h"
#include "engine/tensor/storage.h"

namespace tt::server {

class CopyStream {
 public:
  explicit CopyStream(std::shared_ptr<Account> account) { context_.account = std::move(account); }

  // Calls `issue` with the stream on `device`, which is leased at first use.
  void with_stream(Device device, absl::FunctionRef<void(Stream&)> issue) {
    MutexLock lock(mutex_);
    const TracedCopies traced(context_.account.get());
    issue(context_.stream(device));
  }
  // Allocates memory that is charged to the account and ordered after earlier work in this stream.
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
