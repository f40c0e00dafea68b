// InProcessTransport: passes frames to an engine in the same process. The conformance rows run over it and over the
// real wire.
//
// Can record the frames it sends: their concatenation parses as one frame (seeds of tests/fuzz/targets/frame_fuzz.cc).
#pragma once

#include <condition_variable>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include "client/transport/transport.h"
#include "server/session/in_process.h"

namespace tt {

class InProcessTransport final : public client::Transport {
 public:
  // Appends sent frames to the file `record`; "" disables recording.
  explicit InProcessTransport(std::shared_ptr<server::InProcessEngine> engine, const std::string& record = "");

  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply) override;
  absl::Status open(const std::string& session_key) override;
  std::optional<absl::Status> send(const v1::Frame& frame, std::chrono::milliseconds timeout) override;
  std::optional<absl::Status> receive(v1::Reply* reply, std::chrono::milliseconds timeout) override;
  absl::Status upload(uint64_t transfer, Device device, absl::Span<const char> bytes,
                      client::TransferProgress* progress) override;
  absl::Status download(uint64_t handle, uint64_t after, absl::Span<char> into, client::TransferProgress* progress,
                        v1::Error* error) override;
  absl::StatusOr<uint64_t> cancel(uint64_t through) override;
  void shutdown() override;

 private:
  std::shared_ptr<server::InProcessEngine> engine_;
  std::ofstream record_;  // not open if recording is disabled
  std::string key_;
  std::mutex mutex_;
  std::condition_variable replied_;
  std::deque<v1::Reply> replies_;
  bool closed_ = false;
};

}  // namespace tt
