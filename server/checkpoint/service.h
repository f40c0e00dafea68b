// CheckpointService: a session's checkpoint operations in progress, and its threads for them.
//
// Attached to the session's Context; used on the thread on which the Context is current. Its destruction cancels the
// operations and waits for the threads, at most as long as a system call takes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "distributed/group/task_queue.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/memory/account.h"
#include "engine/session/service.h"
#include "server/checkpoint/job.h"
#include "server/checkpoint/root.h"
#include "server/checkpoint/snapshot.h"
#include "server/transfer/copy_stream.h"

namespace tt::server {

class CheckpointService final : public SessionService {
 public:
  // `root`: null if the session may not use checkpoints.
  CheckpointService(std::shared_ptr<const CheckpointRoot> root, std::shared_ptr<SuspensionNotifier> notifier,
                    std::shared_ptr<Account> account)
      : root_(std::move(root)),
        notifier_(std::move(notifier)),
        account_(std::move(account)),
        copy_stream_(std::make_shared<CopyStream>(account_)) {}
  ~CheckpointService() override;

  std::string unsaved() const override { return started_.empty() ? "" : "it writes a checkpoint"; }

  // Throws Error if there is none.
  std::shared_ptr<const CheckpointRoot> root() const;
  const std::shared_ptr<Account>& account() const { return account_; }

  // An instruction: a job, perhaps a second one that depends on its outcome, and the completion of the call. The
  // functions run on the session's thread.
  struct Operation {
    std::shared_ptr<CheckpointJob> job;
    std::function<std::shared_ptr<CheckpointJob>()> next{};
    std::function<void(Call&)> complete{};
  };
  // Runs the current instruction: the first call starts it and throws Suspended, and so do the calls until its jobs are
  // complete. Then completes `call`, or throws the error of a job. In a cancelled frame, cancels the job and throws
  // Cancelled.
  void run(Call& call, absl::FunctionRef<Operation()> start);
  // Starts a job for run(), in the order of the calls.
  std::shared_ptr<CheckpointJob> start_job(CheckpointJob::Body body) { return add(std::move(body), false); }

  // Starts a write that wait() completes, beside the session's instructions. Writes run one after the other. Throws
  // Error if the number is in use or not positive, or if there are too many.
  void start(int64_t number, absl::FunctionRef<CheckpointJob::Body()> make);
  // Like run(), for a write that was started; returns its job. Throws Error if there is none with this number.
  std::shared_ptr<CheckpointJob> wait(int64_t number);
  const CheckpointJob& find(int64_t number) const;
  // For copies from files to devices.
  const std::shared_ptr<CopyStream>& copy_stream() const { return copy_stream_; }
  // Of the writes that were started.
  TensorSnapshots& snapshots() { return snapshots_; }

 private:
  static constexpr size_t kMaxStarted = 1024;
  std::shared_ptr<CheckpointJob> add(CheckpointJob::Body body, bool in_background);

  const std::shared_ptr<const CheckpointRoot> root_;
  const std::shared_ptr<SuspensionNotifier> notifier_;
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<CopyStream> copy_stream_;
  std::optional<Operation> current_;  // of the suspended instruction
  absl::flat_hash_map<int64_t, std::shared_ptr<CheckpointJob>> started_;
  TensorSnapshots snapshots_;
  std::shared_ptr<CheckpointJob> last_foreground_;  // may run after its instruction was cancelled
  distributed::TaskQueue foreground_, background_;  // destroyed first: they wait for the jobs
};

}  // namespace tt::server
