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

// Shared by a session and gRPC. Functions are called on the session's thread, those of Suspension on any thread.
class PullCall final : public Suspension,
                       grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                       public std::enable_shared_from_this<PullCall> {
 public:
  struct Source {
    std::string address;  // "host:port"
    std::string token;
    std::string capability;
    std::chrono::milliseconds timeout;  // for the offer, and then for each part of the bytes
  };

  // Starts to write the value to `target`, a contiguous tensor on the CPU that nothing else uses.
  static std::shared_ptr<PullCall> start(std::shared_ptr<grpc::Channel> channel, const Source& source, Tensor target,
                                         std::shared_ptr<SuspensionNotifier> notifier);

  // Whether the call has ended, or makes no progress.
  bool ready() override;
  TimePoint deadline() override;

  // Returns the tensor if it is complete, null if not yet. Throws the error of the offer, or Error (RuntimeError; for
  // another dtype or other sizes than `target` has, ValueError).
  Tensor result();
  // Ends the call; its bytes that arrive later are dropped.
  void cancel();

 private:
  using Clock = std::chrono::steady_clock;

  PullCall(std::shared_ptr<grpc::Channel> channel, const Source& source, Tensor target,
           std::shared_ptr<SuspensionNotifier> notifier);
  void begin();
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void accept(const grpc::ByteBuffer& reply);  // throws Error
  void accept_first(grpc::ByteBuffer* reply);  // throws Error
  Error failure(const grpc::Status& status) const;

  const std::shared_ptr<grpc::Channel> channel_;
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
  std::shared_ptr<PullCall> self_;  // until OnDone()

  std::atomic<Clock::rep> progress_;  // when the last bytes arrived
  mutable Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::distributed
