#include "server/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/group_service.h"
#include "distributed/pull_service.h"
#include "server/checkpoint/service.h"
#include "server/log.h"
#include "server/session/publish_service.h"

namespace tt::server {
namespace {

// How often wait_until_idle() calls `wanted`.
constexpr std::chrono::milliseconds kPollInterval{50};

}  // namespace

const char* phase_name(SessionActivity::Phase phase) {
  switch (phase) {
    case SessionActivity::Phase::kIdle: return "idle";
    case SessionActivity::Phase::kPrepare: return "prepare";
    case SessionActivity::Phase::kExecute: return "execute";
    case SessionActivity::Phase::kSuspended: return "suspended";
    case SessionActivity::Phase::kReply: return "reply";
  }
  return "";
}

Session::Session(Options options)
    : options_(std::move(options)),
      account_(std::make_shared<Account>(
          absl::StrCat("session ", options_.id), options_.memory_limit,
          [sites = sites_](uint32_t id) { return sites->describe(id); },
          options_.tenant != 0 ? options_.tenant : Account::new_tenant(), options_.quota)),
      monitor_(options_.monitor ? options_.monitor : std::make_shared<TransferMonitor>()),
      content_index_(options_.contents ? options_.contents : std::make_shared<ContentIndex>()),
      transfers_(std::make_shared<Transfers>(account_, options_.limits.max_transfers, options_.transfer_timeouts,
                                             monitor_, wake_up_, contents_)),
      download_states_(std::make_shared<DownloadStates>(options_.transfer_timeouts.resume, monitor_)),
      downloads_(std::make_shared<CopyStream>(account_)),
      group_threads_(std::make_shared<distributed::ThreadBudget>(options_.limits.max_group_threads)),
      offload_(options_.offload ? std::make_unique<SessionOffload>(options_.offload, options_.principal, account_)
                                : nullptr),
      cancellation_(options_.frame_time_limit) {
  account_->charge_host(kHostBytes);
  slots_.set_limit(options_.limits.max_handles);
  content_index_->add(contents_);
  context_.account = account_;
  context_.share_gpus(options_.queues.get(), options_.share.get(), &flow_);
  context_.services.attach(std::make_unique<TransferService>(transfers_));
  context_.services.attach(
      std::make_unique<distributed::GroupService>(wake_up_, options_.peers, options_.open_gate, group_threads_));
  context_.services.attach(std::make_unique<CheckpointService>(options_.checkpoint_root, wake_up_, account_));
  context_.services.attach(std::make_unique<distributed::PullService>(wake_up_, options_.peers, options_.open_gate));
  context_.services.attach(std::make_unique<ShareService>(
      options_.shared_tensors ? options_.shared_tensors : std::make_shared<SharedTensors>(), options_.memory_limit));
  context_.services.attach(std::make_unique<PublishService>(
      options_.publications ? options_.publications : std::make_shared<Publications>(options_.memory_limit),
      Principal{.name = options_.principal, .role = options_.role, .quota = options_.quota}, options_.id));
  context_.services.attach(std::make_unique<ProgramDefiner>(
      options_.programs ? options_.programs : std::make_shared<ProgramCache>(), options_.principal, options_.limits));
  context_.services.attach(std::make_unique<Programs>());
  context_.describe_site = [this](uint32_t id) { return sites_->describe(id); };
}

Session::~Session() { close(); }

void Session::park() {
  MutexLock lock(progress_mutex_);
  parked_.store(true, std::memory_order_release);
  released_.notify_all();
}

bool Session::wait_until_idle(absl::FunctionRef<bool()> wanted) {
  MutexLock lock(progress_mutex_);
  ++waiting_;
  bool continues = wanted();
  while (continues && busy()) {
    progress_.wait_for(progress_mutex_, kPollInterval);
    continues = wanted();
  }
  --waiting_;
  return continues;
}

uint64_t Session::cancel(uint64_t through) {
  MutexLock lock(progress_mutex_);
  cancel_through_ = std::max(cancel_through_, through);
  const uint64_t running = running_.load(std::memory_order_relaxed);
  if (running != 0 && running <= through) cancellation_.request(CancelReason::kClient);
  wake_up_->notify();
  return executed();
}

void Session::enforce_time_limit() {
  if (cancellation_.time_limit() == Cancellation::Clock::duration::zero()) return;
  MutexLock lock(progress_mutex_);
  if (!busy() || cancellation_.running() < cancellation_.time_limit()) return;
  if (!cancellation_.requested()) {
    log_line(LogLevel::kWarning, {id(), principal()},
             absl::StrCat("session ", id(), ": frame ", running_.load(), " exceeded the time limit; cancelling it"));
  }
  cancellation_.request(CancelReason::kTimeLimit);
  wake_up_->notify();
}

Error Session::ended() const {
  MutexLock lock(progress_mutex_);
  return Error(ErrorKind::kConnection, absl::StrCat("[connection] the session ", end_));
}

void Session::refuse_frames(std::string why) {
  MutexLock lock(progress_mutex_);
  if (!stopped_) end_ = std::move(why);
  stopped_.store(true, std::memory_order_release);
  released_.notify_all();
}

void Session::stop(std::string why) {
  refuse_frames(std::move(why));
  transfers_->close();
}

void Session::begin_closing(std::string why) {
  refuse_frames(std::move(why));
  // Before the running frame's waits end, so that it is not answered as usual.
  cancellation_.request(CancelReason::kEnded);
  transfers_->close();
  monitor_->end_session(options_.id);
  wake_up_->notify();
}

void Session::close() {
  begin_closing();
  MutexLock execution(execution_mutex_);
  MutexLock lock(mutex_);
  if (!over()) free_everything();
}

void Session::free_everything() {
  over_.store(true, std::memory_order_release);
  transfers_->close();
  monitor_->end_session(options_.id);  // calls that begin later see that the session is over
  download_states_->clear();
  contents_->close();
  slots_.clear();
  executor_.clear();
  unreturned_ = nullptr;
  if (offload_) offload_->clear();
  program_.clear();
  part_.clear();
  replacement_ = {};
  windows_ = nullptr;
  replies_.clear();
  sites_->clear();
  context_.close();
  account_->set_bookkeeping(0, 0);
  account_->set_program(0);
  account_->refund_host(kHostBytes);
  publish(executed());
  std::shared_ptr<SharedSegment> unused;  // destroyed after the lock is released: the destructor may wait for a device
  MutexLock lock(progress_mutex_);
  segment_.swap(unused);
}

void Session::publish(uint64_t executed) {
  const ExecutorStats& stats = executor_.stats();
  MutexLock lock(progress_mutex_);
  executed_.store(executed, std::memory_order_release);
  instructions_.store(stats.instructions, std::memory_order_relaxed);
  status_.set_frames(executed);
  status_.set_handles(slots_.size());
  status_.set_instructions(stats.instructions);
  status_.set_fused(stats.fused);
  status_.set_failed(stats.failed);
  if (const Programs* programs = context_.services.find<Programs>()) {
    status_.set_programs(programs->size());
    status_.set_program_runs(static_cast<uint64_t>(programs->runs()));
  }
  if (windows_ != nullptr) {
    status_.set_windows(static_cast<uint64_t>(windows_->compiled()));
    status_.set_window_runs(static_cast<uint64_t>(windows_->runs()));
    status_.set_window_instructions(static_cast<uint64_t>(windows_->saved_instructions()));
  }
  ReplayCounts replays = context_.replays();
  status_.set_replayed(replays.launches);
  status_.set_replay_refusal(std::move(replays.refusal));
  if (waiting_ != 0) progress_.notify_all();
}

v1::SessionStatus Session::status() const {
  v1::SessionStatus status;
  {
    MutexLock lock(progress_mutex_);
    status = status_;
  }
  std::chrono::duration<double> age = std::chrono::steady_clock::now() - opened_;
  status.set_id(options_.id);
  status.set_client(options_.client);
  status.set_principal(options_.principal);
  status.set_age_seconds(age.count());
  status.set_held_bytes(account_->held());
  status.set_offloaded_bytes(offloaded_bytes());
  status.set_peak_bytes(account_->peak());
  status.set_limit_bytes(account_->limit());
  status.set_group_threads(group_threads_->used());
  status.set_waited_seconds(static_cast<double>(waited_ns_.load(std::memory_order_relaxed)) * 1e-9);
  const int position = options_.queues ? options_.queues->position(flow_) : -1;
  status.set_queue_position(position + 1);
  status.set_state(position >= 0 ? "queued" : phase_name(activity().phase));
  return status;
}

}  // namespace tt::server
