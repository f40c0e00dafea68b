#include "distributed/pull/pull_call.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/pull/wire.h"

namespace tt::distributed {
namespace {

// A peer that does not answer at all is detected by gRPC's keepalive; this leaves time for it, and for the answer that
// no tensor was offered in time.
constexpr std::chrono::seconds kAnswerTime{10};
constexpr int kMaxShownSizes = 16;

ErrorKind checked_kind(uint32_t kind) {
  const bool known = kind >= static_cast<uint32_t>(ErrorKind::kRuntime) &&
                     kind <= static_cast<uint32_t>(ErrorKind::kPermission) &&
                     kind != static_cast<uint32_t>(ErrorKind::kConnection);
  return known ? static_cast<ErrorKind>(kind) : ErrorKind::kRuntime;
}

}  // namespace

PullCall::PullCall(const std::shared_ptr<grpc::Channel>& channel, const Source& source, Tensor target,
                   std::shared_ptr<SuspensionNotifier> notifier)
    : source_(source),
      target_(std::move(target)),
      bytes_(static_cast<size_t>(target_.numel()) * item_size(target_.dtype())),
      notifier_(std::move(notifier)),
      progress_(Clock::now().time_since_epoch().count()) {
  v1::PullRequest request;
  request.set_capability(source_.capability);
  request.set_timeout_milliseconds(static_cast<uint64_t>(source_.timeout.count()));
  serialize(request, &request_);
  context_.AddMetadata("authorization", absl::StrCat("Bearer ", source_.token));
  grpc::GenericStub(channel).PrepareBidiStreamingCall(&context_, kPullMethod, grpc::StubOptions(), this);
  StartWriteLast(&request_, grpc::WriteOptions());
  StartRead(&reply_);
  progress_.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
  StartCall();
}

PullCall::~PullCall() {
  context_.TryCancel();
  MutexLock lock(mutex_);
  while (!done_) changed_.wait(mutex_);
}

bool PullCall::ready() {
  {
    MutexLock lock(mutex_);
    if (done_ || error_) return true;
  }
  return Clock::now() >= deadline();
}

PullCall::TimePoint PullCall::deadline() {
  return Clock::time_point(Clock::duration(progress_.load(std::memory_order_relaxed))) + source_.timeout + kAnswerTime;
}

Tensor PullCall::result() {
  MutexLock lock(mutex_);
  if (error_) throw Error(*error_);
  if (done_) return target_;
  check(Clock::now() < deadline(), "the engine at ", source_.address, " sent nothing for ",
        std::chrono::duration<double>(source_.timeout + kAnswerTime).count(), " s");
  return Tensor();
}

void PullCall::OnReadDone(bool ok) {
  if (!ok) return;                            // OnDone() follows
  progress_.load(std::memory_order_acquire);  // ThreadSanitizer does not see that gRPC orders its callbacks
  try {
    accept(reply_);
  } catch (const Error& error) {
    {
      MutexLock lock(mutex_);
      if (!error_) error_ = error;
    }
    return context_.TryCancel();
  }
  progress_.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
  StartRead(&reply_);
}

void PullCall::accept(const grpc::ByteBuffer& reply) {
  if (!has_header_) return accept_first(&reply_);
  char* const to = target_.data_as<char>() + received_;
  const int64_t size = read_data(reply, absl::MakeSpan(to, bytes_ - received_));
  check(size > 0 && static_cast<size_t>(size) <= bytes_ - received_, "the engine at ", source_.address,
        " sent an invalid message after ", received_, " of ", bytes_, " bytes");
  received_ += static_cast<size_t>(size);
}

void PullCall::accept_first(grpc::ByteBuffer* reply) {
  v1::PullReply first;
  const bool valid = deserialize(reply, &first) && (first.has_header() || first.has_error());
  check(valid, "the engine at ", source_.address, " sent an invalid message, expected the tensor's dtype and sizes");
  if (first.has_error()) {
    throw Error(checked_kind(first.error().kind()), absl::StrCat("the computation of the offered tensor failed: ",
                                                                 first.error().message().substr(0, kMaxErrorBytes)));
  }
  const auto& sizes = first.header().sizes();
  const auto shown = sizes.begin() + std::min(sizes.size(), kMaxShownSizes);
  check(ErrorKind::kValue, first.header().dtype() == static_cast<uint32_t>(target_.dtype()), "expected ",
        target_.meta(), ", but the offered tensor has another dtype");
  check(ErrorKind::kValue, std::equal(sizes.begin(), sizes.end(), target_.sizes().begin(), target_.sizes().end()),
        "expected ", target_.meta(), ", but the offered tensor has the sizes ", Sizes(sizes.begin(), shown));
  has_header_ = true;
}

void PullCall::OnDone(const grpc::Status& status) {
  progress_.load(std::memory_order_acquire);  // as in OnReadDone()
  const std::shared_ptr<SuspensionNotifier> notifier = notifier_;
  {
    MutexLock lock(mutex_);
    if (!error_ && !status.ok()) error_ = failure(status);
    if (!error_ && !(has_header_ && received_ == bytes_)) {
      error_ = Error(ErrorKind::kRuntime,
                     absl::StrCat("the engine at ", source_.address, " sent ", received_, " of ", bytes_, " bytes"));
    }
    done_ = true;
    changed_.notify_all();
  }
  notifier->notify();  // this object may have been destroyed
}

Error PullCall::failure(const grpc::Status& status) const {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return Error(ErrorKind::kRuntime, absl::StrCat("the engine at ", source_.address,
                                                     " cannot be reached, or was lost: ", status.error_message()));
    case grpc::StatusCode::CANCELLED:
      return Error(ErrorKind::kRuntime, absl::StrCat("the engine at ", source_.address, " ended the transfer after ",
                                                     received_, " of ", bytes_, " bytes"));
    default: return Error(ErrorKind::kRuntime, status.error_message());
  }
}

}  // namespace tt::distributed
