// Link's callers that wait: for answers, for bulk bytes, for the end. They take the roles themselves.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "client/link.h"

namespace tt::client {

void Link::drive(absl::FunctionRef<bool()> done) {
  InterruptTimer timer;
  while (!done()) {
    throw_if_over();
    if (timer.is_due() && ask_interrupt()) throw Interrupted();
    // A resumption takes as long as it takes: the sender does it where a caller has to stay interruptible.
    if (broken_ && !writing_ && !reading_ && !resuming_ && !timer.interruptible()) {
      resume();
    } else if (!broken_ && !resuming_ && !writing_ && may_send()) {
      callers_send_ = true;
      write_one(timer.patience());
    } else if (!broken_ && !resuming_ && !reading_) {
      read_one(timer.patience());
    } else {
      sleep(timer.patience());
    }
  }
}

void Link::sleep(std::chrono::milliseconds patience) {
  ++waiting_count_;
  if (patience == Transport::kForever) {
    waiting_.wait(mutex_);
  } else {
    waiting_.wait_for(mutex_, patience);
  }
  --waiting_count_;
}

void Link::wait_for_room(size_t bytes) {
  while (is_full(bytes)) {
    bool interrupted = false;
    {
      MutexUnlock unlocked(mutex_);
      LanguageWait others_run;  // its end wants the language's lock, so ours is free then
      InterruptTimer timer;
      MutexLock lock(mutex_);
      while (is_full(bytes) && !over_ && !interrupted) {
        if (timer.is_due()) {
          interrupted = ask_interrupt();
        } else {
          sleep(timer.patience());
        }
      }
    }
    if (interrupted) throw Interrupted();
    throw_if_over();
  }
}

// ---- Interrupts

bool Link::ask_interrupt() {
  bool yes = false;
  {
    MutexUnlock unlocked(mutex_);
    yes = interrupted();
  }
  if (yes) note_interrupt();
  return yes;
}

void Link::note_interrupt() {
  const bool again = acknowledged_ < interrupted_at_;  // what the last interrupt left running still does
  if (again) (void)cancel_queued();                    // an engine that cannot runs on, as after the first
  interrupted_at_ = sealed_ + (building_->empty() ? 0 : 1);
}

absl::StatusOr<uint64_t> Link::cancel_queued() {
  if (!building_->empty()) seal();  // what is issued from here on is not meant
  const uint64_t through = sealed_;
  MutexUnlock unlocked(mutex_);
  return transport_->cancel(through);
}

void Link::cancel() {
  CallLock lock(*this);
  absl::Status status = cancel_queued().status();
  if (status.ok()) return;
  fail(absl::IsUnimplemented(status) ? ErrorKind::kNotImplemented : ErrorKind::kConnection, "[cancel] the engine at ",
       transport_->address(), " did not cancel: ", status.message());
}

// ---- Waits

uint64_t Link::flush_locked() {
  uint64_t last = sealed_ + (building_->empty() ? 0 : 1);
  flush_through_ = std::max(flush_through_, last);
  return last;
}

uint64_t Link::flush() {
  CallLock lock(*this);
  uint64_t last = flush_locked();
  drive([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sent_ >= last || acknowledged_ >= last; });
  return last;
}

void Link::synchronize() {
  CallLock lock(*this);
  uint64_t last = flush_locked();
  drive([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return acknowledged_ >= last; });
}

std::vector<v1::ReadResult> Link::read(absl::Span<const uint64_t> handles, bool meta_only) {
  constexpr size_t kBytes = 24;
  CallLock lock(*this);
  Waiter waiter{sealed_ + 1, next_request_, std::vector<v1::ReadResult>(handles.size()), handles.size()};
  for (uint64_t handle : handles) {
    v1::Read* read = building_->message().add_reads();
    read->set_request(next_request_++);
    read->set_handle(handle);
    read->set_meta_only(meta_only);
    building_->count_bytes(kBytes);
  }
  flush_locked();
  waiters_.push_back(&waiter);
  absl::Cleanup leave = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { std::erase(waiters_, &waiter); };
  drive([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiter.missing == 0; });
  return std::move(waiter.results);
}

// ---- Bulk bytes

void Link::recover_transfer(const absl::Status& status, Attempts* attempts) {
  using Clock = std::chrono::steady_clock;
  // Of a transfer that never comes further, while the link itself stands.
  constexpr auto kPatience = std::chrono::seconds(30);
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    fail(ErrorKind::kOutOfMemory, "[transfer] ", status.message());
  }
  // There is room when other transfers end, which may take instructions that are queued here.
  if (absl::IsAborted(status)) {
    flush();
    attempts->moved = Clock::now();
    return pause(attempts);
  }
  ++attempts->progress.failures;
  if (attempts->progress.bytes != std::exchange(attempts->moved_to, attempts->progress.bytes)) {
    attempts->moved = Clock::now();
    attempts->in_vain = 0;
  }
  // ALREADY_EXISTS: the engine has not seen yet that the call before this one broke.
  bool again = absl::IsUnavailable(status) || absl::IsCancelled(status) || absl::IsInternal(status) ||
               absl::IsUnknown(status) || absl::IsAlreadyExists(status);
  {  // An empty frame there and back tells whether the connection stands, and mends it where it does not.
    CallLock lock(*this);
    building_->count_bytes(1);
  }
  synchronize();
  if (!again) fail(ErrorKind::kRuntime, "[transfer] failed: ", status.message());
  if (Clock::now() - attempts->moved >= kPatience) {
    fail(ErrorKind::kConnection, "[transfer] ", attempts->name, " stopped at ", attempts->progress.bytes, " of ",
         attempts->bytes, " bytes: no progress for ", kPatience.count(), " s, last failure: ", status.message());
  }
  pause(attempts);
}

void Link::pause(Attempts* attempts) {
  constexpr int kMostPause = 10;  // times kPause
  constexpr auto kPause = std::chrono::milliseconds(5);
  if (attempts->timer.is_due()) {
    MutexLock lock(mutex_);
    if (ask_interrupt()) throw Interrupted();
  }
  std::this_thread::sleep_for(kPause * std::min(attempts->in_vain++, kMostPause));
}

template <typename Transfer>
absl::Status Link::noting_interrupts(Transfer transfer) {
  try {
    return transfer();
  } catch (const Interrupted&) {
    MutexLock lock(mutex_);
    note_interrupt();
    throw;
  }
}

void Link::upload(uint64_t transfer, Device device, absl::Span<const char> bytes) {
  for (Attempts attempts{"upload", bytes.size(), {}};;) {
    absl::Status status =
        noting_interrupts([&] { return transport_->upload(transfer, device, bytes, &attempts.progress); });
    if (status.ok()) return;
    recover_transfer(status, &attempts);
  }
}

void Link::watch_download(int by) {
  MutexLock lock(mutex_);
  downloads_ += by;
  role_is_free();
}

void Link::download(uint64_t handle, absl::Span<char> into) {
  uint64_t after = flush();
  watch_download(1);
  absl::Cleanup unwatch = [this] { watch_download(-1); };
  for (Attempts attempts{"download", into.size(), {}};;) {
    v1::Error error;
    absl::Status status =
        noting_interrupts([&] { return transport_->download(handle, after, into, &attempts.progress, &error); });
    if (!error.message().empty()) throw remote_error(error);
    if (status.ok()) return;
    recover_transfer(status, &attempts);
  }
}

// ---- The end

bool Link::finish(std::chrono::milliseconds patience, InterruptTimer timer) noexcept {
  using Clock = std::chrono::steady_clock;
  if (is_forked_copy()) return true;
  bool interrupted = false;
  {
    MutexLock lock(mutex_);
    if (!over_ && !closing_) {
      closing_ = true;
      building_->message().set_close(true);
      building_->count_bytes(1);
      uint64_t last = flush_locked();
      sender_asleep_ = false;
      sender_.notify_one();
      for (auto now = Clock::now(), until = now + patience; now < until; now = Clock::now()) {
        if (over_ || acknowledged_ >= last) break;
        if (timer.is_due() && (interrupted = ask_interrupt())) break;
        sleep(std::min(timer.patience(), std::chrono::ceil<std::chrono::milliseconds>(until - now)));
      }
    }
    end(Error(ErrorKind::kConnection, "[connection] the session is closed"));
    stopping_ = true;
    sender_.notify_all();
  }
  transport_->shutdown();
  return !interrupted;
}

Session::Counters Link::counters() const {
  MutexLock lock(mutex_);
  return counters_;
}

}  // namespace tt::client
