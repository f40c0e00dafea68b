// PullCall: one pull in progress. A session's instruction suspends on it; gRPC's threads write the bytes.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "engine/program/suspension.h"
#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt::distributed {

// Owned by a session's threads; functions are called on the session's thread, those of Suspension on any of them. The
// destructor cancels the call and waits for gRPC's threads: a channel must not be destroyed by these, and the call's
// context holds one.
class PullCall final : public Suspension, grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  struct Source {
    std::string address;  // "host:port"
    std::string token;
    std::string capability;
    std::chrono::milliseconds timeout;  // for the offer, and then for each part of the bytes
  };

  // Starts to write the value to `target`, a contiguous tensor on the CPU that nothing else uses.
  PullCall(const std::shared_ptr<grpc::Channel>& channel, const Source& source, Tensor target,
           std::shared_ptr<SuspensionNotifier> notifier);
  ~PullCall() override;
  PullCall(const PullCall&) = delete;
  PullCall& operator=(const PullCall&) = delete;

  // Whether the call has ended, or makes no progress.
  bool ready() override;
  TimePoint deadline() override;

  // Returns the tensor if it is complete, null if not yet. Throws the error of the offer, or Error (RuntimeError;
  // ValueError if dtype or sizes differ from those of `target`).
  Tensor result();

 private:
  using Clock = std::chrono::steady_clock;

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void accept(const grpc::ByteBuffer& reply);  // throws Error
  void accept_first(grpc::ByteBuffer* reply);  // throws Error
  Error failure(const grpc::Status& status) const;

  const Source source_;
  const Tensor target_;
  const size_t bytes_;
  const std::shared_ptr<SuspensionNotifier> notifier_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer reply_;
  // Used by gRPC's calls only, which run one at a time.
  bool has_header_ = false;
  size_t received_ = 0;

  std::atomic<Clock::rep> progress_;  // when the last bytes arrived
  mutable Mutex mutex_;
  CondVar changed_;  // done_ was set
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::distributed
