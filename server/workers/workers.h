// Workers: the worker processes of an engine, one per principal that has sessions.
//
// A worker starts when its principal first opens a session, and ends after a time without sessions
// and published tensors. Each session is
// opened in the worker by a single-use key, so that no byte of it passes through the engine. If a worker ends
// otherwise, its principal's sessions are lost, and the next Hello starts another worker, after a pause if that happens
// often.
//
// Owned by the daemon. Thread-safe. One thread starts workers and watches them; it lives as long as they do, because
// the kernel ends a worker with the thread that started it. Calls to workers are made without the lock.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "server/rpc/placement.h"
#include "server/workers/port_range.h"
#include "server/workers/worker_process.h"

namespace tt::server {

class Workers final : public Placement {
 public:
  struct Options {
    std::vector<std::string> arguments;  // of every worker, without its principal and addresses
    std::string socket;                  // path of the engine's unix socket, beside which workers' are; empty: none
    std::vector<std::string> hosts;      // on which the engine listens for TCP connections, and so do workers
    PortRange ports;                     // of workers; by default the system chooses
    std::chrono::milliseconds idle{300'000};  // a worker ends after this time without either
    std::chrono::milliseconds grace{10'000};  // time for workers to end with the engine
  };

  explicit Workers(Options options);
  ~Workers() override;  // calls stop()

  // RESOURCE_EXHAUSTED, UNAVAILABLE with a reason.
  absl::Status place(const Principal& principal, bool by_socket, v1::HelloReply* reply) override;
  absl::Status locate(const Principal& principal, uint64_t worker, bool by_socket, v1::HelloReply* reply) override;
  size_t revoke(absl::string_view principal) override;

  // Sends a signal to every worker.
  void send_signal(int signal);
  // Starts no more workers. `they_end`: those that run end by themselves; stop() sends them no signal, which would end
  // their sessions at once.
  void close(bool they_end = false);
  // Waits until all workers have ended, or `done` returns true.
  void wait_until_ended(absl::FunctionRef<bool()> done);
  // Ends all workers, and kills those that still run after the grace period. Idempotent.
  void stop();

  // The worker of a principal, which may be called while the object exists.
  struct Running {
    std::string principal;
    std::shared_ptr<WorkerProcess> process;
    std::chrono::steady_clock::time_point started;
  };
  std::vector<Running> running() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string principal;
    uint64_t number = 0;  // Redirect.worker
    std::string socket;
    uint32_t port = 0;
    Clock::time_point started;
    std::shared_ptr<WorkerProcess> process;  // null: not started yet
    absl::Status failure;                    // why it was not started
    std::atomic<bool> has_answered{false};
    bool ending = false;      // gets no more sessions
    int admitting = 0;        // calls of place() that use it
    uint64_t admissions = 0;  // all calls of place()
    // For changes of the limits while sessions go on.
    Principal limits;
    std::string sent_limits;
  };
  using EntryPointer = std::shared_ptr<Entry>;
  // A principal's workers that ended by a fault, one soon after the other.
  struct Faults {
    int count = 0;
    Clock::time_point last;
  };
  struct Lost {
    uint64_t number;
    std::string principal, reason;
  };

  // Returns the principal's worker, which may still have to start.
  absl::StatusOr<EntryPointer> worker_of(const Principal& principal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status admit(Entry& entry, const Principal& principal, v1::HelloReply* reply) ABSL_LOCKS_EXCLUDED(mutex_);
  static void describe(const Entry& entry, bool by_socket, v1::Redirect* redirect);
  void run();
  void start_requested() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void collect_ended() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void check_activity();
  void wake() const;

  const Options options_;
  const FileDescriptor wake_;  // an eventfd
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<EntryPointer> entries_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Faults> faults_ ABSL_GUARDED_BY(mutex_);  // by principal
  std::deque<Lost> lost_ ABSL_GUARDED_BY(mutex_);                 // the latest
  uint64_t last_session_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_socket_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool they_end_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::server
