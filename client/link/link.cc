#include "client/link/link.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/frame_limits.h"

namespace tt::client {
namespace {

ErrorKind kind_of(const v1::Error& error) {
  if (error.kind() == v1::ERROR_KIND_UNSPECIFIED) return ErrorKind::kRuntime;
  return static_cast<ErrorKind>(error.kind());
}

// Number of forks between the program's first process and this one. A forked child's copy of a link has no sender
// thread, and its mutex may have been locked at the time of the fork.
std::atomic<int> forks{0};

uint64_t nanoseconds(InFlightLimit::Clock::time_point time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

int count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)registered;
  return forks;
}

// Gives the engine's plug-in devices the engine's names for their types, and lists them with the other devices. Leaves
// out those that this client cannot name.
void add_plugin_devices(v1::HelloReply* engine) {
  for (const v1::DeviceDescription& device : engine->plugin_devices()) {
    const int64_t type = device.device() >> 8;
    try {
      if (type < static_cast<int64_t>(DeviceType::kPlugin) || type >= kNumDeviceTypes) continue;
      name_device_type(static_cast<DeviceType>(type), device.type_name());
      decode_device(device.device());
    } catch (const Error&) {
      continue;
    }
    *engine->add_devices() = device;
  }
}

}  // namespace

Link::Link(std::unique_ptr<Transport> transport, v1::HelloRequest hello)
    : forks_(count_forks()), transport_(std::move(transport)) {
  const auto start = InFlightLimit::Clock::now();
  absl::Status status = transport_->hello(hello, &engine_);
  const auto round_trip = InFlightLimit::Clock::now() - start;
  if (status.ok()) status = transport_->open(engine_.session_key());
  if (!status.ok()) {
    fail(ErrorKind::kConnection, "[connection] no session with the engine at ", transport_->address(), ": ",
         status.message());
  }
  add_plugin_devices(&engine_);
  resumption_ = std::make_unique<Resumption>(*transport_, std::move(hello), engine_);
  {
    MutexLock lock(mutex_);
    window_.set_limits(engine_.limits());
    in_flight_limit_.connected(round_trip);
  }
  sender_thread_ = std::thread([this] { run_sender(); });
  if (const BackgroundUploads limits = transport_->background_uploads(); limits.max_calls > 0) {
    uploads_.emplace(limits, [this](uint64_t transfer, Device device, absl::Span<const char> bytes) {
      try {
        send_upload(transfer, device, bytes, Mode::kBackground);
      } catch (const std::exception&) {
        // The engine rejected the upload or stopped receiving it: the instruction that waits for it fails in the
        // engine, at once or at its time limit.
      }
    });
    uploads_->set_round_trip(round_trip);
  }
}

Link::~Link() {
  finish(std::chrono::seconds(2), InterruptTimer::never());  // a destructor cannot throw
  if (uploads_) uploads_->stop();
  background_downloads_.stop();
  sender_thread_.join();
  if (canceller_.joinable()) canceller_.join();
  for (std::thread& thread : upload_again_) thread.join();
}

bool Link::is_forked_copy() const { return forks.load(std::memory_order_relaxed) != forks_; }

Mutex& Link::mutex_of_process() const {
  if (is_forked_copy()) [[unlikely]] {
    fail(ErrorKind::kConnection,
         "[connection] the session belongs to the process that this one was forked from: "
         "connect again here, or start workers with the spawn method");
  }
  return mutex_;
}

void Link::throw_if_over() const {
  if (refused_frame_) throw remote_error(*refused_frame_);
  if (over_) throw *over_;
}

RemoteError Link::remote_error(const v1::Error& error) const {
  std::string site = site_name_ && error.site() != 0 ? site_name_(error.site()) : "";
  std::string message = site.empty() ? error.message() : absl::StrCat(error.message(), " (issued at ", site, ")");
  return RemoteError(kind_of(error), std::move(message), std::move(site), error.retriable());
}

// ---- Appending

Link::Appending::Appending(Link& link, const FrameSize& size, absl::FunctionRef<void()> before_waiting)
    : link_(link), lock_(link) {
  const size_t limit = link_.window_.max_instruction_bytes();
  check(ErrorKind::kValue, size.bytes <= limit, "expected an instruction of at most ", limit,
        " bytes, which is the engine's limit, got one of about ", size.bytes);
  if (link_.window_.is_full(size)) [[unlikely]] {
    before_waiting();
    link_.wait_for_room(size);
  }
  link_.window_.building().count(size);
}

Link::Appending::Appending(Link& link, const FrameSize& size) : link_(link), lock_(link) {
  link_.window_.begin_frame_for(size);
  link_.window_.building().count(size);
}

void Link::Appending::check_names(const Op& op, size_t count) const {
  link_.mutex_.assume_held();
  check(count <= frame_limits::kResults, "[", op.name, "] makes ", count, " tensors, but the engine allows at most ",
        frame_limits::kResults, " per call");
  const uint64_t limit = link_.engine_.limits().max_handles();
  const uint64_t live = link_.window_.live_handles();
  check(limit == 0 || live + count <= limit, "[", op.name, "] makes ", count, " tensors, but this session has ", live,
        " already, and the engine allows at most ", limit);
}

Link::Appending::~Appending() {
  // A running sender finds new work without a wake-up, so a burst of calls wakes it once.
  const bool wake = link_.sender_.asleep() && link_.has_work_for_sender() && !link_.can_wait() && link_.sender_.wake();
  lock_.unlock();
  if (wake) link_.wake_sender_.notify_one();
}

void Link::set_trace_context(std::string traceparent) {
  constexpr uint64_t kMaxUnsent = 64;
  CallLock lock(*this);
  drive([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return window_.unsent() < kMaxUnsent; });
  window_.set_trace_context(std::move(traceparent));
}

v1::Instruction* Link::Appending::add_instruction() {
  link_.mutex_.assume_held();
  ++link_.counters_.instructions;
  return link_.window_.add_instruction();
}

void Link::release(uint64_t handle) noexcept {
  if (is_forked_copy()) return;
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (over_) return;
    window_.release(handle);
    // Usually an instruction follows soon and carries the release.
    wake = sender_.asleep() && !sender_.timed_wait() && sender_.wake();
  }
  if (wake) wake_sender_.notify_one();
}

// ---- The two roles

// Wakes the threads that can use a free role, or that wait for received data.
void Link::role_is_free() {
  if (sleeping_callers_ > 0) callers_.notify_all();
  if (sender_.asleep() && has_work_for_sender() && sender_.wake()) wake_sender_.notify_one();
}

void Link::write_one(std::chrono::milliseconds timeout) {
  const auto now = InFlightLimit::Clock::now();
  OutgoingFrame& frame = window_.begin_send(now);
  const uint64_t sequence = frame.sequence();
  const size_t bytes = frame.bytes();
  writing_ = true;
  ++counters_.frames;
  counters_.bytes_sent += bytes;
  if (sleeping_callers_ > 0) callers_.notify_all();  // the window may have room again
  std::optional<absl::Status> status;
  {
    MutexUnlock unlocked(mutex_);
    status = transport_->send(frame.message(), timeout);
  }
  writing_ = false;
  window_.end_send(status.has_value());
  if (!status) {
    --counters_.frames;
    counters_.bytes_sent -= bytes;
  } else if (!status->ok()) {
    stream_broke(*std::move(status));
  } else {
    in_flight_limit_.sent(sequence, now);
    if (frame_log_.active()) [[unlikely]]
      frame_log_.add({sequence, nanoseconds(now), nanoseconds(InFlightLimit::Clock::now())});
  }
  clear_acknowledged();
  role_is_free();
}

bool Link::read_one(std::chrono::milliseconds timeout) {
  reading_ = true;
  v1::Reply reply;
  std::optional<absl::Status> status;
  {
    MutexUnlock unlocked(mutex_);
    status = transport_->receive(&reply, timeout);
  }
  reading_ = false;
  const bool arrived = status && status->ok();
  if (arrived) {
    handle(reply);
  } else if (status) {
    all_read_ = true;
    stream_broke(*std::move(status));
  }
  clear_acknowledged();
  role_is_free();
  return arrived;
}

// Clears acknowledged frames without holding the mutex, because clearing a large frame takes long.
void Link::clear_acknowledged() {
  while (std::unique_ptr<OutgoingFrame> frame = window_.take_acknowledged()) {
    {
      MutexUnlock unlocked(mutex_);
      frame->clear();
    }
    window_.recycle(std::move(frame));
  }
}

void Link::handle(v1::Reply& reply) {
  resumption_->reply_arrived();
  interrupted_since_.reset();
  for (v1::ReadResult& result : *reply.mutable_reads()) reads_.answer(result);
  numbers_.answer(reply);
  if (window_.keeps_acknowledged() && reply.persisted() > window_.persisted()) [[unlikely]] {
    window_.persisted(reply.persisted());
    kept_uploads_.forget(reply.persisted());
  }
  window_.acknowledge(numbers_.answered_through(reads_.answered_through(reply.executed())));
  in_flight_limit_.acknowledged(window_.acknowledged(), InFlightLimit::Clock::now());
  window_.set_max_unacknowledged(in_flight_limit_.frames());
  if (frame_log_.active()) [[unlikely]]
    frame_log_.acknowledge(window_.acknowledged(), nanoseconds(InFlightLimit::Clock::now()));
  if (reply.has_fault()) {
    refused_frame_ = reply.fault();
    end(Error(kind_of(*refused_frame_), refused_frame_->message()));
  }
}

void Link::end(Error error) {
  if (!over_) over_ = std::move(error);
  window_.drop_releases();
  callers_.notify_all();
}

void Link::stream_broke(absl::Status status) {
  if (closing_) return end(Error(ErrorKind::kConnection, "[connection] the session is closed"));
  // The status of a read is the stream's own. A failed write only shows that it has ended.
  if (!broken_ || absl::IsUnavailable(*broken_)) broken_ = std::move(status);
  if (interrupted_since_) return;
  interrupted_since_ = InFlightLimit::Clock::now();
  has_warned_ = false;
}

void Link::read_rest() {
  constexpr auto kTimeout = std::chrono::milliseconds(100);
  while (!all_read_ && !over_ && read_one(kTimeout)) {
  }
}

void Link::resume() {
  resuming_ = true;
  read_rest();
  const absl::Status why = *broken_;
  InFlightLimit::Clock::duration round_trip{};
  absl::Status status;
  uint64_t executed = window_.acknowledged();
  if (!over_) {
    MutexUnlock unlocked(mutex_);
    status = resumption_->run(why, &round_trip, &executed);
  }
  resuming_ = false;
  broken_.reset();
  all_read_ = false;
  if (status.ok() && executed < window_.acknowledged()) {
    const std::string lost = repeat_after(executed);
    if (!lost.empty()) status = absl::DataLossError(absl::StrCat("it has lost a part of the session: ", lost));
  }
  window_.rewind();
  in_flight_limit_.connected(round_trip);
  if (uploads_) uploads_->set_round_trip(round_trip);
  window_.set_max_unacknowledged(in_flight_limit_.frames());
  if (!status.ok()) {
    end(Error(ErrorKind::kConnection,
              absl::StrCat("[connection] the engine at ", transport_->address(), " is gone: ", status.message())));
  }
  role_is_free();
}

}  // namespace tt::client
