// TransferMonitor: limits and monitors the Upload and Download calls of one engine.
//
// Each call occupies a thread of gRPC's pool, so their number is limited per session and in total. A call is cancelled
// if its client neither sends nor reads for `idle`, or if its session ends. Owned by Sessions and shared by its
// sessions; a Session without an engine has its own. Thread-safe. One thread, started with the first call, checks for
// idle calls and for expired objects.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/memory/quota.h"

namespace tt::server {

// An object whose contents expire at a certain time.
class Expirable {
 public:
  virtual ~Expirable() = default;
  // Drops expired contents. Called on the monitor's thread.
  virtual void drop_expired() = 0;
};

class TransferMonitor : public std::enable_shared_from_this<TransferMonitor> {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Direction { kUpload, kDownload };

  struct Limits {
    size_t per_engine = 512;  // calls of all sessions
    size_t per_session = 64;  // calls of one session in one direction
    size_t streaming = 4;     // number of these calls that may hold a chunk in memory
    std::chrono::milliseconds idle{60'000};
  };

  // One Upload or Download call. Used by the call's thread; destroyed before the call ends.
  class Call {
   public:
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Blocks until fewer than `streaming` calls of the session and direction hold chunks. This call may then hold one,
    // until release_buffers() or its end. Returns false if `should_continue`, called every 50 ms, returned false.
    bool acquire_buffers(absl::FunctionRef<bool()> should_continue);
    void release_buffers();
    // Whether other calls of the session hold chunks.
    bool shares_buffers() const;
    // Sets the upload that the call carries, for cancel_upload().
    void carry(uint64_t transfer);
    // While an instance exists, the call waits for its client.
    class ClientWait {
     public:
      explicit ClientWait(Call& call) : call_(call) { call_.waits_since_ = Clock::now().time_since_epoch().count(); }
      ~ClientWait() { call_.waits_since_ = 0; }
      ClientWait(const ClientWait&) = delete;
      ClientWait& operator=(const ClientWait&) = delete;

     private:
      Call& call_;
    };
    std::chrono::milliseconds idle_limit() const { return monitor_->limits_.idle; }

   private:
    friend class TransferMonitor;
    Call(std::shared_ptr<TransferMonitor> monitor, uint64_t session, Direction direction, std::function<void()> cancel,
         std::shared_ptr<Quota> quota)
        : monitor_(std::move(monitor)),
          session_(session),
          direction_(direction),
          cancel_(std::move(cancel)),
          quota_(std::move(quota)) {}

    const std::shared_ptr<TransferMonitor> monitor_;
    const uint64_t session_;
    const Direction direction_;
    const std::function<void()> cancel_;
    const std::shared_ptr<Quota> quota_;  // null: none
    uint64_t transfer_ ABSL_GUARDED_BY(monitor_->mutex_) = 0;
    bool has_buffers_ ABSL_GUARDED_BY(monitor_->mutex_) = false;
    std::atomic<Clock::rep> waits_since_{0};  // 0: not waiting for the client
  };

  TransferMonitor() : TransferMonitor(Limits()) {}
  explicit TransferMonitor(Limits limits) : limits_(limits) {}
  ~TransferMonitor();

  // Registers a call. `cancel` makes the call's blocked reads and writes fail, and may be called several times, from
  // any thread, while the Call exists. Returns ABORTED (retriable once other calls end) if the session, its principal
  // or the engine has too many calls.
  absl::StatusOr<std::unique_ptr<Call>> begin(uint64_t session, Direction direction, std::function<void()> cancel,
                                              std::shared_ptr<Quota> quota = nullptr);
  // Cancels the session's calls.
  void end_session(uint64_t session);
  // Cancels the session's calls that carry the upload, except `except`.
  void cancel_upload(uint64_t session, uint64_t transfer, const Call* except = nullptr);
  // Calls drop_expired() at `when`, or a little later, if the object still exists.
  void expire_at(Clock::time_point when, std::weak_ptr<Expirable> object);

 private:
  struct Usage {
    std::array<size_t, 2> calls{};
    std::array<size_t, 2> streaming{};
  };
  static size_t index(Direction direction) { return static_cast<size_t>(direction); }
  void finish(Call& call);
  void start_thread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run();
  // Cancels idle calls. Returns the time of the next check.
  Clock::time_point cancel_idle(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  Mutex mutex_;
  CondVar changed_;       // notifies thread_
  CondVar buffers_free_;  // notifies calls that wait for buffers
  absl::flat_hash_set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Usage> sessions_ ABSL_GUARDED_BY(mutex_);  // sessions with calls
  std::multimap<Clock::time_point, std::weak_ptr<Expirable>> expiring_ ABSL_GUARDED_BY(mutex_);
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;    // number of calls begun
  uint64_t checked_ ABSL_GUARDED_BY(mutex_) = 0;  // value of begun_ at the thread's last check
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;   // whether the thread sleeps until a call begins
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::server
