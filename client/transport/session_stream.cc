#include "client/transport/session_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/connection/metadata.h"
#include "client/transport/call_events.h"
#include "client/transport/grpc_call.h"

namespace tt::client {

namespace {

using Clock = std::chrono::steady_clock;
using shared_ring::Outcome;

// How often a thread that uses the pipes looks at the gRPC stream.
constexpr std::chrono::milliseconds kPoll{10};
constexpr size_t kMaxKept = size_t{256} << 10;  // of a message's memory

int64_t now_in_ticks() { return Clock::now().time_since_epoch().count(); }

// Returns a PipeReader's or PipeWriter's `next_sleep`: ends the wait at the end of the timeout or when `stop` returns
// true.
template <typename Stop>
auto until(std::chrono::milliseconds timeout, Stop stop) {
  const bool forever = timeout == std::chrono::milliseconds::max();
  const auto deadline = forever ? Clock::time_point::max() : Clock::now() + timeout;
  return [=]() -> std::optional<std::chrono::nanoseconds> {
    if (stop()) return std::nullopt;
    if (forever) return kPoll;
    const auto left = deadline - Clock::now();
    if (left <= Clock::duration::zero()) return std::nullopt;
    return std::min<std::chrono::nanoseconds>(kPoll, left);
  };
}

void resize(std::string* bytes, size_t size) {
  if (bytes->capacity() > kMaxKept && size <= kMaxKept) std::string().swap(*bytes);
  bytes->resize(size);
}

}  // namespace

SessionStream::SessionStream(v1::Engine::Stub& stub, grpc::ClientContext& context,
                             const FrameEncoder::Options& encoding, std::unique_ptr<SharedMemory::Pipes> pipes)
    : context_(context), encoder_(encoding), pipes_(std::move(pipes)) {
  if (pipes_) add_metadata(context, "teletensor-pipes", absl::StrCat(pipes_->memory->nonce()));
  under_way_[kWritten] = true;  // the first write waits for the start of the call
  call_ = stub.AsyncSession(&context, &queue_, tag(kWritten));
  if (!pipes_) return;
  under_way_[kRead] = read_begun_ = true;
  call_->Read(&incoming_, tag(kRead));
}

void SessionStream::abort() {
  context_.TryCancel();
  MutexLock lock(mutex_);
  ended_ = true;
  if (std::exchange(aborted_, true)) return;
  alarm_.Set(&queue_, gpr_now(GPR_CLOCK_MONOTONIC), tag(kAborted));
  changed_.notify_all();
}

bool SessionStream::drain() {
  abort();
  queue_.Shutdown();
  return drain_queue(queue_);
}

bool SessionStream::await(Event event, gpr_timespec deadline) {
  while (under_way_[event] && !aborted_) {
    if (polling_) {
      // Another thread polls until an event or its own deadline. Then this thread polls.
      if (gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), deadline) >= 0) return false;
      ++waiting_;
      if (gpr_time_cmp(deadline, gpr_inf_future(GPR_CLOCK_MONOTONIC)) == 0) {
        changed_.wait(mutex_);
      } else {
        changed_.wait_for(mutex_, kInterruptInterval);
      }
      --waiting_;
    } else {
      polling_ = true;
      void* next;
      bool ok;
      grpc::CompletionQueue::NextStatus outcome;
      {
        MutexUnlock unlocked(mutex_);
        outcome = queue_.AsyncNext(&next, &ok, deadline);
      }
      polling_ = false;
      if (outcome == grpc::CompletionQueue::GOT_EVENT) {
        under_way_[reinterpret_cast<intptr_t>(next)] = false;
        ok_[reinterpret_cast<intptr_t>(next)] = ok;
      }
      if (waiting_ > 0) changed_.notify_all();
      if (outcome == grpc::CompletionQueue::GOT_EVENT) continue;
    }
    if (under_way_[event] && !aborted_ && gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), deadline) >= 0) return false;
  }
  return true;
}

std::optional<absl::Status> SessionStream::send(const v1::Frame& frame, std::chrono::milliseconds timeout) {
  if (pipes_) return send_through_pipe(frame, timeout);
  MutexLock lock(mutex_);
  if (!await(kWritten, deadline_after(timeout))) return std::nullopt;
  if (aborted_ || !ok_[kWritten]) return absl::UnavailableError("the stream broke");
  under_way_[kWritten] = true;
  lock.unlock();
  call_->Write(encoder_.encode(frame), tag(kWritten));
  return absl::OkStatus();
}

std::optional<absl::Status> SessionStream::receive(v1::Reply* reply, std::chrono::milliseconds timeout) {
  if (pipes_) return receive_through_pipe(reply, timeout);
  MutexLock lock(mutex_);
  const gpr_timespec deadline = deadline_after(timeout);
  if (!read_begun_) {
    under_way_[kRead] = read_begun_ = true;
    MutexUnlock unlocked(mutex_);
    call_->Read(&incoming_, tag(kRead));
  }
  if (!await(kRead, deadline)) return std::nullopt;
  if (aborted_) return absl::UnavailableError("the stream was closed");
  read_begun_ = false;
  if (ok_[kRead]) {
    reply->Swap(&incoming_);
    return absl::OkStatus();
  }
  return end_of_stream();
}

absl::Status SessionStream::end_of_stream() {
  under_way_[kFinished] = true;
  call_->Finish(&status_, tag(kFinished));
  await(kFinished, deadline_after(std::chrono::milliseconds::max()));
  return status_.ok() ? absl::UnavailableError("the engine ended the stream") : to_status(status_);
}

// ---- With pipes

bool SessionStream::has_ended() {
  if (ended_.load(std::memory_order_acquire)) return true;
  const int64_t now = now_in_ticks();
  if (now < next_poll_.load(std::memory_order_relaxed)) return false;
  next_poll_.store(now + Clock::duration(kPoll).count(), std::memory_order_relaxed);
  MutexLock lock(mutex_);
  if (await(kRead, gpr_time_0(GPR_CLOCK_MONOTONIC))) ended_.store(true, std::memory_order_release);
  return ended_.load(std::memory_order_acquire);
}

absl::Status SessionStream::break_pipe() {
  pipe_is_broken_ = true;
  abort();
  return absl::UnavailableError("the positions in the shared memory are invalid");
}

std::optional<absl::Status> SessionStream::send_through_pipe(const v1::Frame& frame,
                                                             std::chrono::milliseconds timeout) {
  const absl::Status broke = absl::UnavailableError("the stream broke");
  if (has_ended()) return broke;
  auto stop = [this] {
    read_ahead();
    return has_ended();
  };
  // A frame is encoded once, so it is begun only when it fits, unless it is longer than half of the pipe.
  Outcome outcome = pipes_->frames.await_room(shared_ring::kPipeBytes / 2, until(timeout, stop));
  if (outcome == Outcome::kStopped) return has_ended() ? std::optional(broke) : std::nullopt;
  if (outcome == Outcome::kReady) {
    const v1::Frame& encoded = encoder_.encode(frame);
    resize(&outgoing_bytes_, encoded.ByteSizeLong());
    encoded.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(outgoing_bytes_.data()));
    outcome = pipes_->frames.write(outgoing_bytes_, until(std::chrono::milliseconds::max(), stop));
  }
  if (outcome != Outcome::kReady) return outcome == Outcome::kCorrupt ? break_pipe() : broke;
  if (frame.reads_size() > 0) awaits_answer_.store(true, std::memory_order_relaxed);
  return absl::OkStatus();
}

Outcome SessionStream::read_reply(std::string* bytes, std::chrono::milliseconds timeout) {
  constexpr uint32_t kMaxReply = uint32_t{64} << 20;  // more than any engine sends
  uint32_t size = 0;
  auto stop = [this] { return has_ended(); };
  const Outcome outcome =
      pipes_->replies.await(&size, awaits_answer_.load(std::memory_order_relaxed), until(timeout, stop));
  if (outcome != Outcome::kReady) return outcome;
  if (size > kMaxReply) return Outcome::kCorrupt;
  resize(bytes, size);
  return pipes_->replies.read(bytes->data(), size, until(std::chrono::milliseconds::max(), stop));
}

void SessionStream::read_ahead() {
  if (!receiving_.try_lock()) return;
  MutexLock lock(receiving_, std::adopt_lock);
  for (;;) {
    std::string bytes;
    const Outcome outcome = read_reply(&bytes, std::chrono::milliseconds(0));
    if (outcome == Outcome::kCorrupt) break_pipe();
    if (outcome != Outcome::kReady) return;
    read_ahead_.push_back(std::move(bytes));
  }
}

std::optional<absl::Status> SessionStream::receive_through_pipe(v1::Reply* reply, std::chrono::milliseconds timeout) {
  MutexLock receiving(receiving_);
  Outcome outcome = Outcome::kReady;
  if (read_ahead_.empty()) {
    outcome = read_reply(&incoming_bytes_, timeout);
  } else {
    incoming_bytes_ = std::move(read_ahead_.front());
    read_ahead_.pop_front();
  }
  if (outcome == Outcome::kReady) {
    const bool is_reply = reply->ParseFromArray(incoming_bytes_.data(), static_cast<int>(incoming_bytes_.size()));
    if (reply->reads_size() > 0) awaits_answer_.store(false, std::memory_order_relaxed);
    if (is_reply) return absl::OkStatus();
    return break_pipe();
  }
  if (outcome == Outcome::kCorrupt) return break_pipe();
  if (!ended_) return std::nullopt;
  MutexLock lock(mutex_);
  if (aborted_) return absl::UnavailableError("the stream was closed");
  if (ok_[kRead]) return absl::UnavailableError("the engine answered beside the shared memory");
  return end_of_stream();
}

}  // namespace tt::client
