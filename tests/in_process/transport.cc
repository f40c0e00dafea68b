#include "tests/in_process/transport.h"

namespace tt {

InProcessTransport::InProcessTransport(std::shared_ptr<server::InProcessEngine> engine, const std::string& record)
    : engine_(std::move(engine)) {
  if (!record.empty()) record_.open(record, std::ios::binary | std::ios::app);
}

absl::Status InProcessTransport::hello(const v1::HelloRequest& request, v1::HelloReply* reply) {
  return engine_->hello(request, reply);
}

absl::Status InProcessTransport::open(const std::string& session_key) {
  key_ = session_key;
  return absl::OkStatus();
}

// Executes the frame synchronously.
std::optional<absl::Status> InProcessTransport::send(const v1::Frame& frame, std::chrono::milliseconds) {
  if (record_.is_open()) frame.SerializeToOstream(&record_);
  v1::Reply reply;
  absl::Status status = engine_->execute(key_, frame, &reply);
  if (!status.ok()) return status;
  std::lock_guard lock(mutex_);
  replies_.push_back(std::move(reply));
  replied_.notify_one();
  return status;
}

std::optional<absl::Status> InProcessTransport::receive(v1::Reply* reply, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  auto is_over = [&] { return !replies_.empty() || closed_; };
  if (timeout == kForever) {
    replied_.wait(lock, is_over);
  } else if (!replied_.wait_for(lock, timeout, is_over)) {
    return std::nullopt;
  }
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

absl::StatusOr<uint64_t> InProcessTransport::cancel(uint64_t) {
  return absl::UnimplementedError("an engine in this process executes each frame as it is sent");
}

void InProcessTransport::shutdown() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  replied_.notify_all();
}

}  // namespace tt
