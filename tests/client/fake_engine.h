// FakeEngine: an in-memory engine that records the requests it receives, with a transport that fails at chosen
// points.
//
// For tests that need a failure at an exact moment; all other tests use teletensord.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/transport/transport.h"

namespace tt::client::testing {

// Where a stream breaks: before or after the `at`-th event (from 1) of the kind.
struct Break {
  enum Kind { kNever, kBeforeDelivery, kAfterDelivery, kBeforeReply, kAfterReply } kind = kNever;
  int at = 0;
  std::chrono::milliseconds delay{0};  // how long the stream lasts before
};

class FakeEngine {
 public:
  // Executes a frame as an engine does: once and in order. Repeats the replies of a frame that was already executed.
  void execute(const v1::Frame& frame, std::deque<v1::Reply>* replies);

  std::mutex mutex;
  std::condition_variable changed;
  v1::Limits limits;
  uint32_t max_op_id = UINT16_MAX;
  v1::OperatorTable operators;  // sent unless empty
  bool default_dtypes = true;
  double lease_seconds = 60;
  std::vector<v1::Instruction> executed;  // each once
  std::vector<int> frame_sizes;           // instructions per executed frame
  std::vector<uint64_t> released;
  std::vector<v1::Site> sites;
  std::map<uint64_t, v1::Error> poison;  // by handle
  std::map<uint64_t, v1::TensorDescription> descriptions;
  std::map<uint64_t, std::string> values;  // bytes by handle; a missing entry reads as the handle's id
  // Answers to v1::Frame::scalar_reads by sequence. The answer to a read is the number of instructions before it.
  std::map<uint64_t, std::string> numbers;
  std::vector<Break> breaks;  // consumed from the front
  uint64_t last_sequence = 0;
  bool closed = false;
  bool dead = false;       // connections are refused
  bool has_ended = false;  // the process is known to have ended
  std::chrono::milliseconds hello_delay{0};
  int silent = 0;          // number of Hellos that are not answered
  int refusing = 0;        // number of Hellos whose connections are refused
  bool forgetful = false;  // Hello opens a new session instead of resuming
  bool paused = false;     // frames arrive but are not executed
  bool full = false;       // frames do not arrive: flow control
  bool can_cancel = true;
  int lost_cancels = 0;                        // number of Cancels that are not answered
  std::vector<uint64_t> cancels;               // `through` of each request
  uint64_t cancelled_through = 0;              // frames up to this one are answered without execution
  std::deque<absl::Status> transfer_failures;  // statuses of the next transfer calls, in order
  int transfer_calls = 0;
  int hellos = 0;
  int most_in_flight = 0;  // frames that arrived and were not yet answered
};

class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(std::shared_ptr<FakeEngine> engine) : engine_(std::move(engine)) {}

  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply) override;
  bool engine_has_ended() const override;
  absl::Status open(const std::string& session_key) override;
  std::optional<absl::Status> send(const v1::Frame& frame, std::chrono::milliseconds timeout) override;
  std::optional<absl::Status> receive(v1::Reply* reply, std::chrono::milliseconds timeout) override;
  absl::Status upload(uint64_t transfer, Device device, absl::Span<const char> bytes,
                      TransferProgress* progress) override;
  absl::Status download(uint64_t handle, uint64_t after, absl::Span<char> into, TransferProgress* progress,
                        v1::Error* error) override;
  absl::StatusOr<uint64_t> cancel(uint64_t through) override;
  void shutdown() override;
  std::string address() const override { return "the fake"; }

 private:
  absl::Status next_transfer();
  template <typename Done>
  bool wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout, Done done);
  bool breaks_at(Break::Kind kind, int count);
  void break_stream();
  void run_arrived();

  std::shared_ptr<FakeEngine> engine_;
  std::deque<v1::Frame> arrived_;  // not yet executed, because the engine is paused
  std::deque<v1::Reply> replies_;
  std::map<uint64_t, std::string> uploads_;
  int delivered_ = 0, replied_ = 0;  // numbers of frames and replies on this stream
  bool broken_ = false;
  bool shut_down_ = false;
};

}  // namespace tt::client::testing
