// Session: a client's ordered conversation and all it owns. Knows nothing of gRPC.
//
// Thread-safe. Frames are executed one at a time, on the calling thread; transfers run beside them. What is wrong with
// an operation stands in its results' place; a frame that lies is answered with a fault and ends the session.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/context.h"
#include "engine/executor.h"
#include "engine/slot_table.h"
#include "proto/wire.h"
#include "server/byte_source.h"
#include "server/copy_lane.h"
#include "server/decode.h"
#include "server/download_states.h"
#include "server/limits.h"
#include "server/replies.h"
#include "server/shared_segment.h"
#include "server/sites.h"
#include "server/transfer.h"
#include "server/transfer_monitor.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

// A tensor's bytes, about to be sent; or the error in its place.
struct Download {
  v1::TensorDescription tensor;
  std::unique_ptr<ByteSource> bytes;
  std::optional<v1::Error> error;
  uint64_t offset = 0;  // of the first byte that will be sent
  uint64_t state = 0;   // names the tensor's bytes; 0: the download cannot be continued
};

// How a download that broke off goes on: after `offset` bytes where the tensor's bytes are still those that `state`
// named, else from the start. One of more than `keep_above` bytes can be continued in its turn.
struct DownloadResume {
  uint64_t offset = 0;
  uint64_t state = 0;
  uint64_t keep_above = UINT64_MAX;
};

class Session {
 public:
  struct Options {
    uint64_t id = 0;
    std::string key;
    std::string client;
    uint64_t memory_limit = 0;  // 0: none
    Limits limits;
    Transfers::Patience patience;
    std::shared_ptr<TransferMonitor> monitor = nullptr;  // the engine's; null: one of the session's own
  };

  explicit Session(Options options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Executes `frame`, unless it was executed already, and fills the cleared `reply`.
  void execute(const v1::Frame& frame, v1::Reply* reply);
  // A transfer's call: limited in number, and cancelled when the session ends. See TransferMonitor::begin.
  absl::StatusOr<std::unique_ptr<TransferMonitor::Call>> begin_call(TransferMonitor::Direction direction,
                                                                    std::function<void()> cancel);
  // See Transfers::begin. Where the transfer is under way, its call is cancelled: the client has given it up.
  absl::StatusOr<std::unique_ptr<Upload>> begin_upload(uint64_t transfer, uint64_t bytes, Device device = {},
                                                       bool resume = false);
  // Waits until frame `after` has been executed, asking `go_on` now and then, and until a device has the tensor.
  // INVALID_ARGUMENT on a name that stands for nothing, CANCELLED where go_on said so.
  absl::StatusOr<Download> begin_download(uint64_t handle, uint64_t after, absl::FunctionRef<bool()> go_on,
                                          const DownloadResume& resume = {});
  // After a download whose bytes are let go of: its tensor's memory is not kept for longer than its tensor.
  void finish_download() { download_states_->sweep(); }

  // The segment shared with the client; null where there is none. `offer` makes a new one in the old one's place.
  std::shared_ptr<SharedSegment> segment() const;
  std::shared_ptr<SharedSegment> offer_segment();

  // Frees everything the session owns, to the byte. Waits for the frame that runs; waits within it end. Idempotent.
  void close();
  bool over() const { return over_.load(std::memory_order_acquire); }
  // Sequence of the last frame executed.
  uint64_t executed() const { return executed_.load(std::memory_order_acquire); }

  uint64_t id() const { return options_.id; }
  const std::string& key() const { return options_.key; }
  const std::string& client() const { return options_.client; }
  const Limits& limits() const { return options_.limits; }
  // Everything but `connected`.
  v1::SessionStatus status() const;

 private:
  void run(const v1::Frame& frame, v1::Reply* reply);
  void refuse(const Error& error, size_t instruction, v1::Reply* reply);
  void repeat(const v1::Frame& frame, v1::Reply* reply);
  void answer_reads(const v1::Frame& frame, bool again, v1::Reply* reply);
  void answer(const v1::Read& read, bool again, uint64_t* room, v1::ReadResult* result);
  std::optional<v1::Error> read_from_device(uint64_t handle, const Tensor& tensor, std::string* bytes);
  void download_from_device(uint64_t handle, Tensor tensor, std::unique_lock<std::mutex>& lock, Download* download);
  std::optional<v1::Error> poison_of(uint64_t handle, const Taint& taint);
  void settle();
  void release(const v1::Frame& frame);
  void free_everything();
  void publish(uint64_t executed);

  const Options options_;
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  const std::shared_ptr<Sites> sites_ = std::make_shared<Sites>();
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<TransferMonitor> monitor_;
  const std::shared_ptr<Transfers> transfers_;
  const std::shared_ptr<DownloadStates> download_states_;
  const std::shared_ptr<CopyLane> downloads_;
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> executed_{0};

  std::mutex mutex_;  // held while a frame executes; guards what follows
  Context context_;
  Decoder decoder_;
  Executor executor_;
  SlotTable slots_;
  Replies replies_;

  mutable std::mutex progress_mutex_;  // for those who wait or look, taken for moments only
  std::condition_variable progress_;
  int waiting_ = 0;
  v1::SessionStatus status_;  // as of the last frame
  std::shared_ptr<SharedSegment> segment_;
};

}  // namespace tt::server
