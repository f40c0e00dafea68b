#include "client/transport/session_stream.h"

#include <utility>

#include "client/transport/call_events.h"
#include "client/transport/grpc_call.h"

namespace tt::client {

SessionStream::SessionStream(v1::Engine::Stub& stub, grpc::ClientContext& context,
                             const FrameEncoder::Options& encoding)
    : context_(context), encoder_(encoding) {
  under_way_[kWritten] = true;  // the first write waits for the start of the call
  call_ = stub.AsyncSession(&context, &queue_, tag(kWritten));
}

void SessionStream::abort() {
  context_.TryCancel();
  MutexLock lock(mutex_);
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
  MutexLock lock(mutex_);
  if (!await(kWritten, deadline_after(timeout))) return std::nullopt;
  if (aborted_ || !ok_[kWritten]) return absl::UnavailableError("the stream broke");
  under_way_[kWritten] = true;
  lock.unlock();
  call_->Write(encoder_.encode(frame), tag(kWritten));
  return absl::OkStatus();
}

std::optional<absl::Status> SessionStream::receive(v1::Reply* reply, std::chrono::milliseconds timeout) {
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
  under_way_[kFinished] = true;
  call_->Finish(&status_, tag(kFinished));
  await(kFinished, deadline_after(std::chrono::milliseconds::max()));
  return status_.ok() ? absl::UnavailableError("the engine ended the stream") : to_status(status_);
}

}  // namespace tt::client
