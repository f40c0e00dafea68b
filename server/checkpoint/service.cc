#include "server/checkpoint/service.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "engine/device/cancellation.h"

namespace tt::server {
namespace {

// Makes the scheduler prefer kernels to the calling thread when all cores are in use, also when the thread wakes up.
void lower_priority() {
  constexpr int kNice = 10;  // about a tenth of the time of a thread with nice 0
  const sched_param unused{};
  static_cast<void>(sched_setscheduler(0, SCHED_BATCH, &unused));
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice));
}

}  // namespace

CheckpointService::~CheckpointService() {
  if (last_foreground_) last_foreground_->cancel();
  for (const auto& [number, job] : started_) job->cancel();
}

std::shared_ptr<const CheckpointRoot> CheckpointService::root() const {
  check(root_ != nullptr, "this engine stores no checkpoints: start teletensord with --checkpoint-root DIR");
  return root_;
}

std::shared_ptr<CheckpointJob> CheckpointService::add(CheckpointJob::Body body, bool in_background) {
  auto job = std::make_shared<CheckpointJob>(notifier_, in_background);
  (in_background ? background_ : foreground_).add([job, body = std::move(body)]() mutable {
    if (job->is_background()) lower_priority();
    job->run(std::exchange(body, nullptr));
  });
  if (!in_background) last_foreground_ = job;
  return job;
}

void CheckpointService::run(Call& call, absl::FunctionRef<Operation()> start) {
  if (!current_) current_ = start();
  for (;;) {
    const std::shared_ptr<CheckpointJob> job = current_->job;
    if (!job->work()->ready()) {
      if (!cancel_requested()) throw Suspended{job->work()};
      job->cancel();
      current_.reset();
      check_cancelled();
    }
    const auto next = std::exchange(current_->next, nullptr);
    if (job->work()->error() || !next) break;
    try {
      current_->job = next();
    } catch (const std::exception&) {
      current_.reset();
      throw;
    }
  }
  const Operation done = *std::move(current_);
  current_.reset();
  if (done.job->work()->error()) throw Error(*done.job->work()->error());
  if (done.complete) done.complete(call);
}

void CheckpointService::start(int64_t number, absl::FunctionRef<CheckpointJob::Body()> make) {
  check(ErrorKind::kValue, number > 0 && !started_.contains(number), "expected an unused number for a write, got ",
        number);
  check(started_.size() < kMaxStarted, "a session has at most ", kMaxStarted, " writes that it has not waited for");
  snapshots_.remove_finished();
  started_.emplace(number, add(make(), true));
}

const CheckpointJob& CheckpointService::find(int64_t number) const {
  auto found = started_.find(number);
  check(ErrorKind::kValue, found != started_.end(), "no write was started under number ", number,
        ", or it was waited for");
  return *found->second;
}

std::shared_ptr<CheckpointJob> CheckpointService::wait(int64_t number) {
  find(number);
  const std::shared_ptr<CheckpointJob> job = started_[number];
  if (!job->work()->ready()) {
    job->hurry();
    if (!cancel_requested()) throw Suspended{job->work()};
    job->cancel();
    started_.erase(number);
    check_cancelled();
  }
  started_.erase(number);
  if (job->work()->error()) throw Error(*job->work()->error());
  return job;
}

}  // namespace tt::server
