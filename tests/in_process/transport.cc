#include "tests/in_process/transport.h"

namespace tt {

absl::Status InProcessTransport::hello(const v1::HelloRequest& request, v1::HelloReply* reply) {
  return engine_->hello(request, reply);
}

absl::Status InProcessTransport::open(const std::string& session_key) {
  key_ = session_key;
  return absl::OkStatus();
}

absl::Status InProcessTransport::send(const v1::Frame& frame) {
  v1::Reply reply;
  absl::Status status = engine_->execute(key_, frame, &reply);
  if (!status.ok()) return status;
  std::lock_guard lock(mutex_);
  replies_.push_back(std::move(reply));
  replied_.notify_one();
  return status;
}

absl::Status InProcessTransport::receive(v1::Reply* reply) {
  std::unique_lock lock(mutex_);
  replied_.wait(lock, [&] { return !replies_.empty() || closed_; });
  if (replies_.empty()) return absl::CancelledError("closed");
  *reply = std::move(replies_.front());
  replies_.pop_front();
  return absl::OkStatus();
}

absl::Status InProcessTransport::upload(uint64_t transfer, Device device, absl::Span<const char> bytes,
                                        client::TransferProgress*) {
  return engine_->upload(key_, transfer, device, bytes);
}

absl::Status InProcessTransport::download(uint64_t handle, uint64_t after, absl::Span<char> into,
                                          client::TransferProgress*, v1::Error* error) {
  return engine_->download(key_, handle, after, into, error);
}

void InProcessTransport::shutdown() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  replied_.notify_all();
}

}  // namespace tt
