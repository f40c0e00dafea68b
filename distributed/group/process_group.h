// ProcessGroup: one rank's membership in a group of engines that run collectives together.
//
// Collectives run in the order in which they were started, on the group's thread; messages between two ranks run on one
// thread per peer and direction. Before each collective the ranks exchange CollectiveFingerprints, so that a different
// call or a failed tensor on one rank is an error of that collective on all ranks, after which the group continues. If
// a rank is lost or does not arrive within the timeout, the collective in progress and all later ones fail, and the
// other ranks are informed. Owned by a session's GroupService and by the group's threads. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "distributed/group/collective.h"
#include "distributed/group/collective_fingerprint.h"
#include "distributed/group/device_backend.h"
#include "distributed/group/flight_recorder.h"
#include "distributed/group/group_member.h"
#include "distributed/group/task_queue.h"
#include "distributed/group/thread_budget.h"
#include "distributed/group/work.h"
#include "distributed/store/store.h"
#include "engine/tensor/tensor.h"

namespace tt::distributed {

// Throws Error unless a store's operation succeeded. The message names the rank that serves a lost store.
void check_store(const std::string& group, const absl::Status& status);

class ProcessGroup : public std::enable_shared_from_this<ProcessGroup> {
 public:
  struct Options {
    std::string name;         // with the generation, unique in the store: the ranks find each other by both
    uint64_t generation = 0;  // how often the group was formed again (group_image.h)
    int rank = 0;
    int size = 1;
    std::chrono::milliseconds timeout{30'000};  // for forming the group, and for each collective
    std::shared_ptr<ThreadBudget> threads{};    // of the session; null: no limit
    std::string name_in_store() const;
  };
  // Connects the ranks; blocks. Throws Error. Stops early if `is_cancelled` returns true.
  using Connect = std::function<std::unique_ptr<Backend>(Store& store, const Options& options,
                                                         const std::function<bool()>& is_cancelled)>;
  using OpenStore = std::function<std::shared_ptr<Store>(const std::function<bool()>& is_cancelled)>;

  // A collective with the tensors whose memory it uses.
  struct Request {
    Collective collective;
    double divisor = 1;   // the result of a sum is divided by it
    std::string site;     // "train.py:12 in step"
    std::string failure;  // if not empty, this rank announces that its input is an error
    std::vector<Tensor> tensors;
    // If not null, the collective's memory is on a GPU and may be used after this event of the session's stream.
    std::shared_ptr<const Event> ready;
    Device device{};
  };
  struct Message {
    int peer = 0;
    uint32_t tag = 0;
    DType dtype = DType::kUInt8;
    char* bytes = nullptr;
    size_t size = 0;
    std::string site;
    std::vector<Tensor> tensors;
    std::string failure{};  // if not empty, it is sent instead of the bytes, and receive() of the peer fails with it
  };

  // `device_backend` executes collectives of tensors on GPUs; without it, and where it cannot, these are copied through
  // the host's memory. Throws Error if the session's groups may not use more threads.
  ProcessGroup(Options options, std::shared_ptr<SuspensionNotifier> notifier,
               std::unique_ptr<DeviceBackend> device_backend = nullptr)
      : options_(std::move(options)),
        threads_(options_.threads, kThreads, "a group"),
        notifier_(std::move(notifier)),
        device_backend_(std::move(device_backend)) {}
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const Options& options() const { return options_; }
  int rank() const { return options_.rank; }
  int size() const { return options_.size; }

  // Connects to the other ranks in the background. Called once, before the functions below; these may be called before
  // the work is complete.
  std::shared_ptr<Work> form(OpenStore open_store, Connect connect);
  std::shared_ptr<Work> start(Request request);
  std::shared_ptr<Work> send(Message message);
  std::shared_ptr<Work> receive(Message message);
  // Receives from the rank whose message arrives first, `message.peer` is ignored. The work's value is the sender.
  // Later receives wait until the sender is known. Requires two ranks.
  std::shared_ptr<Work> receive_any(Message message);
  // Fails the collective in progress and all later ones, on all ranks. Does not wait. The first reason is kept.
  void abort(const std::string& reason);

  // What the process that continues the group has to know, except the store's address.
  GroupMember member() const;

  // The last collectives and messages of a rank, as FlightRecorder::text(): this rank's now, or another rank's when its
  // group failed ("" if it has published none, or the store does not answer within a second).
  std::string records(int rank) const;

 private:
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<Work> add(TaskQueue& queue, std::function<void()> run);
  void connect(const OpenStore& open_store, const Connect& connect);
  void run(const Request& request, uint64_t sequence);
  void on_backend(absl::FunctionRef<void()> call);
  void on_backend(int peer, absl::FunctionRef<void()> call);
  // After a timeout, the ranks that waited inform each other through the store, to name the rank that did not.
  std::string timeout_key(int rank) const;
  std::string records_key(int rank) const;
  void publish_records();
  bool is_failed() const;
  // Runs a call that is recorded under this number.
  void run_recorded(uint64_t record, absl::FunctionRef<void()> run);
  void publish_timeout();
  std::string ranks_without_timeout() const;  // "; no answer from rank 2", or ""
  bool has_joined() const;
  bool has_failed_after_forming() const;
  std::string departure_while_forming() const;  // has_left() of a member that has left; "" if none has
  std::string has_left(int rank) const;         // an error's text
  // What the other members receive when this one leaves for a reason.
  std::string reason_to_leave(const std::string& reason) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Store> store() const;
  // Execute a collective after the exchange of fingerprints. The first returns false if the ranks must use the host's
  // memory.
  bool run_on_devices(const Request& request, absl::Span<const CollectiveFingerprint> all);
  void run_through_host(const Request& request);
  void run_on_backend(const Collective& c);
  void check_counts(const Collective& c);
  uint8_t memory_of(const Request& request) const;
  void abort_backends(std::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails the group; with `tell_members`, the other ranks too.
  void fail(const std::string& reason, bool tell_members = true);
  // Returns after the group has failed, because a member left, or after a short time.
  void await_failure();
  uint64_t running_sequence() const;
  void on_member_left(int rank, const std::string& reason);
  void throw_if_failed(uint64_t sequence) const;
  Backend& await_backend();
  // Returns the queue of the messages to or from a peer; the session is charged for a new one.
  TaskQueue& lane(int peer, bool receives) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void send_now(const Message& message);
  void receive_now(const Message& message);
  struct AnyReceive;
  void try_receive(AnyReceive& any, int peer);
  bool claim(AnyReceive& any, int peer);

  // Its queue's thread, the one that watches the ranks connect, and the transport's.
  static constexpr uint64_t kThreads = 3;

  const Options options_;
  const ThreadShare threads_;
  const std::shared_ptr<SuspensionNotifier> notifier_;
  FlightRecorder recorder_;
  mutable Mutex mutex_;
  CondVar changed_;  // backend_ or failure_ was set
  std::optional<std::string> failure_ ABSL_GUARDED_BY(mutex_);
  // Whether the failure is that a member ended after it had formed the group. This member may still be forming it.
  bool failed_after_forming_ ABSL_GUARDED_BY(mutex_) = false;
  std::string reported_failure_ ABSL_GUARDED_BY(mutex_);  // of the latest collective that was called with an error
  std::shared_ptr<Store> store_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Membership> membership_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Backend> backend_;               // set once, under mutex_
  uint64_t started_ ABSL_GUARDED_BY(mutex_) = 0;   // number of collectives
  uint64_t running_ ABSL_GUARDED_BY(mutex_) = 0;   // sequence of the collective in progress; 0: none
  uint64_t complete_ ABSL_GUARDED_BY(mutex_) = 0;  // sequence of the last one that ended
  // Messages by the other rank: sent completely; whose beginning was received.
  std::map<int, uint64_t> sent_ ABSL_GUARDED_BY(mutex_), received_ ABSL_GUARDED_BY(mutex_);
  // Ranks that left the group properly, and the last collective of each.
  std::map<int, uint64_t> departed_ ABSL_GUARDED_BY(mutex_);
  struct Lane {
    HostCharge charge;  // for the queue's thread
    ThreadShare thread;
    TaskQueue queue;
  };
  static constexpr uint64_t kLaneBytes = uint64_t{128} << 10;
  std::map<std::pair<int, bool>, std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mutex_);
  // Used by the queue's thread, except for abort().
  const std::unique_ptr<DeviceBackend> device_backend_;
  enum class DeviceState { kUnknown, kConnected, kUnavailable };
  DeviceState device_state_ = DeviceState::kUnknown;
  Device device_{};                        // with which device_backend_ is connected
  std::unique_ptr<Stream> device_stream_;  // for copies from and to the host
  bool leaves_properly_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<TaskQueue> queue_ = std::make_unique<TaskQueue>();
};

}  // namespace tt::distributed
