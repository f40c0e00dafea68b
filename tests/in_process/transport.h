// InProcessTransport: frames handed to an engine in the same process; the conformance rows run over
// it and over the real wire.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "client/transport.h"
#include "server/in_process.h"

namespace tt {

class InProcessTransport final : public client::Transport {
 public:
  explicit InProcessTransport(std::shared_ptr<server::InProcessEngine> engine) : engine_(std::move(engine)) {}

  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply) override;
  absl::Status open(const std::string& session_key) override;
  std::optional<absl::Status> send(const v1::Frame& frame, std::chrono::milliseconds patience) override;
  std::optional<absl::Status> receive(v1::Reply* reply, std::chrono::milliseconds patience) override;
  absl::Status upload(uint64_t transfer, Device device, absl::Span<const char> bytes) override;
  absl::Status download(uint64_t handle, uint64_t after, absl::Span<char> into, v1::Error* error) override;
  absl::StatusOr<uint64_t> cancel(uint64_t through) override;
  void shutdown() override;

 private:
  std::shared_ptr<server::InProcessEngine> engine_;
  std::string key_;
  std::mutex mutex_;
  std::condition_variable replied_;
  std::deque<v1::Reply> replies_;
  bool closed_ = false;
};

}  // namespace tt
