#include "server/serving/scheduler/batcher.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/pool_threads.h"

namespace tt::server {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};
// Of a batch that runs on the thread of a request: about what several switches between threads take.
constexpr std::chrono::microseconds kShort{100};
// Threads that a thread of a batch wakes up.
constexpr size_t kWakes = 2;

}  // namespace

Batcher::Batcher(Options options, Execute execute)
    : options_(std::move(options)), execute_(std::move(execute)), queues_(options_.levels + 1) {
  for (size_t i = options_.instances; i > 0; --i) idle_.push_back(i - 1);
}

Batcher::~Batcher() {
  stop();
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

size_t Batcher::queued() const {
  MutexLock lock(mutex_);
  return queued_;
}

void Batcher::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  for (const Jobs& jobs : queues_) {
    for (Job* job : jobs) job->changed_->notify_all();
  }
  work_.notify_all();
}

Batcher::Job* Batcher::head() const {
  for (const Jobs& jobs : queues_) {
    if (!jobs.empty()) return jobs.front();
  }
  return nullptr;
}

void Batcher::wake_head() {
  if (idle_.empty()) return;
  if (Job* first = head()) first->changed_->notify_all();
}

bool Batcher::hand_over() {
  if (idle_.empty() || queued_ == 0 || stopped_) return false;
  try {
    const Clock::time_point now = Clock::now();
    if (plan(now).ready > now) {
      wake_head();
      return false;
    }
    if (resting_ != 0) {
      work_.notify_one();
      return true;
    }
    if (threads_.size() >= options_.instances) return true;  // one of them is about to look at the queue
    threads_.emplace_back([this] { run_queue(); });
    return true;
  } catch (const std::exception&) {  // the system has no thread or no memory; the caller's batch must not be lost
    wake_head();
    return false;
  }
}

void Batcher::start(const std::vector<Job*>& batch, const Job& own) {
  if (mean_ > kShort && hand_over()) return;
  execute(batch, &own);
  if (mean_ > kShort) {  // later ones run on other threads
    MutexUnlock unlocked(mutex_);
    release_pool_threads();
  }
  hand_over();
}

void Batcher::run_queue() {
  MutexLock lock(mutex_);
  while (!stopped_) {
    if (!idle_.empty() && queued_ != 0) {
      const Clock::time_point now = Clock::now();
      try {
        const Plan next = plan(now);
        if (next.ready <= now) {
          execute(next.batch, nullptr);
          continue;
        }
      } catch (const std::bad_alloc&) {  // one of the requests tries it, and fails
      }
      wake_head();
    }
    ++resting_;
    work_.wait(mutex_);
    --resting_;
  }
}

void Batcher::remove(Job& job) {
  Jobs& jobs = queues_[job.is_delayed_ ? options_.levels : job.level];
  jobs.erase(std::find(jobs.begin(), jobs.end(), &job));
  --queued_;
}

// A batch is complete if it cannot grow or has a preferred number of rows.
Batcher::Plan Batcher::plan(Clock::time_point now) const {
  Job* const first = head();
  Plan plan{{first}, now};
  if (first->key.empty()) return plan;
  size_t rows = first->rows, preferred = 0;  // rows; requests of the largest preferred batch
  Clock::time_point oldest = first->arrived_;
  bool full = rows >= options_.max_rows;
  const auto is_preferred = [&] {
    return std::binary_search(options_.preferred.begin(), options_.preferred.end(), rows);
  };
  if (is_preferred()) preferred = 1;
  for (auto jobs = queues_.begin(); jobs != queues_.end() && !full; ++jobs) {
    for (Job* job : *jobs) {
      if (job == first || job->key != first->key) continue;
      full = rows + job->rows > options_.max_rows;
      if (full) break;
      plan.batch.push_back(job);
      rows += job->rows;
      oldest = std::min(oldest, job->arrived_);
      if (is_preferred()) preferred = plan.batch.size();
      full = rows == options_.max_rows;
      if (full) break;
    }
  }
  const Clock::time_point ready = oldest + options_.max_delay;
  if (full || ready <= now || (options_.enough_rows != 0 && rows >= options_.enough_rows)) return plan;
  if (preferred != 0) {
    plan.batch.resize(preferred);
  } else {
    plan.ready = ready;
  }
  return plan;
}

void Batcher::execute(const std::vector<Job*>& batch, const Job* own) {
  // A tree: each of the requests that wait wakes up two others. All of them leave run() by its way for done ones.
  // Memory is allocated before anything changes: without it, nothing has happened.
  std::vector<Job*> waiting;
  waiting.reserve(batch.size());
  std::copy_if(batch.begin(), batch.end(), std::back_inserter(waiting), [own](const Job* job) { return job != own; });
  std::vector<std::shared_ptr<CondVar>> first;
  first.reserve(kWakes);
  for (size_t i = 0; (i + 1) * kWakes < waiting.size(); ++i) waiting[i]->wakes_.reserve(kWakes);
  const size_t instance = idle_.back();
  idle_.pop_back();
  const Clock::time_point now = Clock::now();
  size_t rows = 0;
  for (Job* job : batch) {
    remove(*job);
    job->state_ = Job::State::kTaken;
    job->queued = now - job->arrived_;
    rows += job->rows;
  }
  for (Job* job : batch) job->batch_rows = rows;
  batch.front()->is_first = true;
  hand_over();  // another instance may be free
  for (size_t i = 0; i < waiting.size(); ++i) {
    (i < kWakes ? first : waiting[i / kWakes - 1]->wakes_).push_back(waiting[i]->changed_);
  }
  {
    MutexUnlock unlocked(mutex_);
    try {
      execute_(instance, batch);
    } catch (...) {  // a fault; the instance must not be lost
      for (Job* job : batch) job->status = absl::InternalError("[ModelInfer] internal error");
    }
  }
  for (Job* job : batch) job->state_ = Job::State::kDone;
  constexpr int kWeight = 4;
  mean_ += (Clock::now() - now - mean_) / kWeight;
  {
    // The instance stays taken, so that this thread continues with the queue, if it is the batcher's.
    MutexUnlock unlocked(mutex_);
    for (const auto& changed : first) changed->notify_all();
  }
  idle_.push_back(instance);
}

bool Batcher::wait(Job& job) {
  const Clock::time_point now = Clock::now();
  const auto leave = [&](absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    remove(job);
    job.status = std::move(status);
    job.queued = now - job.arrived_;
    wake_head();
    return false;
  };
  if (stopped_) return leave(absl::UnavailableError("[ModelInfer] the model is being unloaded"));
  if (job.is_cancelled && job.is_cancelled()) {
    return leave(absl::CancelledError("[ModelInfer] the request was cancelled while it waited"));
  }
  if (now >= job.deadline || (now >= job.give_up && !options_.delays)) {
    return leave(
        absl::DeadlineExceededError("[ModelInfer] the request's time has passed while it waited in the queue"));
  }
  if (now >= job.give_up && !job.is_delayed_) {
    queues_[options_.levels].push_back(&job);  // first, because there may be no memory
    remove(job);
    job.is_delayed_ = true;
    ++queued_;
    wake_head();
  }
  Clock::time_point until = std::min(job.deadline, job.is_delayed_ ? Clock::time_point::max() : job.give_up);
  if (!idle_.empty() && head() == &job) {
    const Plan next = plan(now);
    if (next.ready <= now) {
      start(next.batch, job);
      if (job.state_ != Job::State::kQueued) return true;
    }
    if (next.ready > now) until = std::min(until, next.ready);
  }
  if (job.is_cancelled) until = std::min(until, now + kPollInterval);
  if (until == Clock::time_point::max()) {
    job.changed_->wait(mutex_);
  } else {
    job.changed_->wait_until(mutex_, until);
  }
  return true;
}

absl::Status Batcher::run(Job& job) {
  MutexLock lock(mutex_);
  if (stopped_) return job.status = absl::UnavailableError("[ModelInfer] the model is being unloaded");
  if (options_.max_queue != 0 && queued_ >= options_.max_queue) {
    return job.status = absl::ResourceExhaustedError(
               absl::StrCat("[ModelInfer] expected at most ", options_.max_queue,
                            " requests in the model's queue, which is full; try again later"));
  }
  job.arrived_ = Clock::now();
  queues_[job.level].push_back(&job);
  ++queued_;
  try {
    run_queued(job);
  } catch (const std::bad_alloc&) {  // in plan() or execute(), before the request was taken
    remove(job);
    wake_head();
    job.status = absl::ResourceExhaustedError("[ModelInfer] memory is exhausted");
  }
  lock.unlock();
  for (const auto& changed : job.wakes_) changed->notify_all();
  return job.status;
}

void Batcher::run_queued(Job& job) {
  if (head() != &job && !idle_.empty()) {  // the batch may be complete now
    const Plan next = plan(job.arrived_);
    const bool is_ready = next.ready <= job.arrived_ && job.arrived_ < std::min(job.give_up, job.deadline);
    if (is_ready && std::find(next.batch.begin(), next.batch.end(), &job) != next.batch.end()) {
      start(next.batch, job);
    } else {
      wake_head();
    }
  }
  for (;;) {
    switch (job.state_) {
      case Job::State::kDone: return;
      case Job::State::kTaken: job.changed_->wait(mutex_); break;
      case Job::State::kQueued:
        if (!wait(job)) return;
        break;
    }
  }
}

}  // namespace tt::server
