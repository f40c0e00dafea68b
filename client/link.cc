#include "client/link.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tt::client {
namespace {

constexpr size_t kSpareFrames = 4;

ErrorKind kind_of(const v1::Error& error) {
  if (error.kind() == v1::ERROR_KIND_UNSPECIFIED) return ErrorKind::kRuntime;
  return static_cast<ErrorKind>(error.kind());
}

// How often this process was forked off since the program began. A child's copy of a link has no sender thread, and
// its mutex may have been locked at the moment of the fork.
std::atomic<int> forks{0};

int count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)registered;
  return forks;
}

std::string gone(const Transport& transport, absl::string_view why) {
  return absl::StrCat("[connection] the engine at ", transport.address(), " is gone: ", why);
}

}  // namespace

Link::Link(std::unique_ptr<Transport> transport, v1::HelloRequest hello)
    : forks_(count_forks()),
      transport_(std::move(transport)),
      hello_(std::move(hello)),
      building_(std::make_unique<OutgoingFrame>()) {
  absl::Status status = transport_->hello(hello_, &engine_);
  if (status.ok()) status = transport_->open(engine_.session_key());
  if (!status.ok()) {
    fail(ErrorKind::kConnection, "[connection] no session with the engine at ", transport_->address(), ": ",
         status.message());
  }
  hello_.set_resume_key(engine_.session_key());
  // The count is an estimate: stay well under what the engine refuses.
  if (uint64_t limit = engine_.limits().max_frame_bytes()) max_bytes_ = std::min<size_t>(max_bytes_, limit / 2);
  sender_thread_ = std::thread([this] { run_sender(); });
}

Link::~Link() {
  finish(std::chrono::seconds(2), InterruptTimer::never());  // nobody is there to throw to
  sender_thread_.join();
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
  if (fault_) throw remote_error(*fault_);
  if (over_) throw *over_;
}

RemoteError Link::remote_error(const v1::Error& error) const {
  std::string site = site_name_ && error.site() != 0 ? site_name_(error.site()) : "";
  std::string message = site.empty() ? error.message() : absl::StrCat(error.message(), " (issued at ", site, ")");
  return RemoteError(kind_of(error), std::move(message), std::move(site), error.retriable());
}

// ---- Appending

bool Link::is_full(size_t bytes) const {
  return !building_->empty() && (building_->instructions() >= kMaxInstructions ||
                                 building_->bytes() + bytes > max_bytes_ || building_->names() >= kMaxNames);
}

Link::Appending::Appending(Link& link, size_t bytes, absl::FunctionRef<void()> before_waiting)
    : link_(link), lock_(link) {
  uint64_t limit = link_.engine_.limits().max_frame_bytes();
  check_as(ErrorKind::kValue, limit == 0 || bytes <= limit, "an instruction of about ", bytes,
           " bytes is more than the engine takes, which is ", limit);
  if (link_.is_full(bytes)) [[unlikely]] {
    before_waiting();
    link_.wait_for_room(bytes);
  }
  link_.building_->count_bytes(bytes);
}

Link::Appending::Appending(Link& link, size_t bytes) : link_(link), lock_(link) { link_.building_->count_bytes(bytes); }

void Link::Appending::check_names(const Op& op, size_t count) const {
  link_.mutex_.assume_held();
  const uint64_t limit = link_.engine_.limits().max_handles();
  const uint64_t live = link_.next_handle_ - 1 - link_.released_;
  check(limit == 0 || live + count <= limit, "[", op.name, "] makes ", count, " tensors, this session has ", live,
        " already, and the engine takes at most ", limit);
}

Link::Appending::~Appending() {
  // A sender that is at work looks for more by itself: a burst of calls wakes it once.
  bool wake = link_.sender_asleep_ && link_.has_work_for_sender() && !link_.can_wait();
  if (wake) link_.sender_asleep_ = false;
  lock_.unlock();
  if (wake) link_.sender_.notify_one();
}

v1::Instruction* Link::Appending::add_instruction() {
  link_.mutex_.assume_held();
  v1::Instruction* instruction = frame().add_instructions();
  ++link_.counters_.instructions;
  if (!link_.releases_.empty()) {
    instruction->mutable_release()->Add(link_.releases_.begin(), link_.releases_.end());
    link_.building_->count_bytes(link_.releases_.size() * sizeof(uint64_t));
    link_.releases_.clear();
  }
  return instruction;
}

// Where callers read after every few calls, waking the sender would only get in their way.
bool Link::can_wait() const {
  constexpr int kFew = 32;
  return callers_send_ && sender_naps_ && building_->instructions() < kFew;
}

void Link::release(uint64_t handle) noexcept {
  if (is_forked_copy()) return;
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (over_) return;
    releases_.push_back(handle);
    ++released_;
    // Usually an instruction comes along shortly that takes it with it.
    wake = sender_asleep_ && !sender_naps_;
    if (wake) sender_asleep_ = false;
  }
  if (wake) sender_.notify_one();
}

void Link::seal() {
  v1::Frame& frame = building_->message();
  frame.set_sequence(++sealed_);
  frame.set_received(acknowledged_);
  frame.mutable_release()->Add(releases_.begin(), releases_.end());
  releases_.clear();
  in_flight_.push_back(std::move(building_));
  if (spare_.empty()) {
    building_ = std::make_unique<OutgoingFrame>();
  } else {
    building_ = std::move(spare_.back());
    spare_.pop_back();
  }
}

// ---- The two roles

bool Link::may_send() const {
  if (broken_ || over_ || !has_unsent()) return false;
  uint64_t limit = engine_.limits().max_frames_in_flight();
  uint64_t in_flight = sent_ - acknowledged_;
  if (limit != 0 && in_flight >= limit) return false;
  return in_flight < kWindow || sent_ < flush_through_;
}

// Other threads may go on now that a role is free or something has arrived.
void Link::role_is_free() {
  if (waiting_count_ > 0) waiting_.notify_all();
  if (sender_asleep_ && has_work_for_sender()) {
    sender_asleep_ = false;
    sender_.notify_one();
  }
}

void Link::write_one(std::chrono::milliseconds patience) {
  if (sent_ == sealed_) seal();
  OutgoingFrame& frame = *in_flight_[sent_ + 1 - in_flight_.front()->sequence()];
  writing_ = true;
  being_written_ = ++sent_;
  ++counters_.frames;
  counters_.bytes_sent += frame.bytes();
  if (waiting_count_ > 0) waiting_.notify_all();  // there is room to append again
  std::optional<absl::Status> status;
  {
    MutexUnlock unlocked(mutex_);
    status = transport_->send(frame.message(), patience);
  }
  writing_ = false;
  if (!status) {  // nothing went out
    sent_ = std::max(acknowledged_, being_written_ - 1);
    --counters_.frames;
    counters_.bytes_sent -= frame.bytes();
  } else if (!status->ok()) {
    broke(*std::move(status));
  }
  being_written_ = 0;
  reap();
  role_is_free();
}

void Link::read_one(std::chrono::milliseconds patience) {
  reading_ = true;
  v1::Reply reply;
  std::optional<absl::Status> status;
  {
    MutexUnlock unlocked(mutex_);
    status = transport_->receive(&reply, patience);
  }
  reading_ = false;
  if (status && status->ok()) {
    handle(reply);
  } else if (status) {
    broke(*std::move(status));
  }
  reap();
  role_is_free();
}

// Frames that a reply has confirmed are used again; clearing a large one takes a while.
void Link::reap() {
  while (!in_flight_.empty() && in_flight_.front()->sequence() <= acknowledged_ &&
         in_flight_.front()->sequence() != being_written_) {
    reaped_.push_back(std::move(in_flight_.front()));
    in_flight_.pop_front();
  }
  while (!reaped_.empty()) {
    std::unique_ptr<OutgoingFrame> frame = std::move(reaped_.back());
    reaped_.pop_back();
    {
      MutexUnlock unlocked(mutex_);
      frame->clear();
    }
    if (spare_.size() < kSpareFrames) spare_.push_back(std::move(frame));
  }
}

void Link::handle(v1::Reply& reply) {
  resumes_in_vain_ = 0;
  for (v1::ReadResult& result : *reply.mutable_reads()) answer(result);
  acknowledge(reply.executed());
  if (reply.has_fault()) {
    fault_ = reply.fault();
    end(Error(kind_of(*fault_), fault_->message()));
  }
}

void Link::answer(v1::ReadResult& result) {
  for (Waiter* waiter : waiters_) {
    uint64_t i = result.request() - waiter->first_request;  // wraps where it is an earlier one
    if (i >= waiter->results.size() || waiter->results[i].request() != 0) continue;
    waiter->results[i].Swap(&result);
    --waiter->missing;
    return;
  }  // none: its caller has been given an error meanwhile
}

// A frame that was executed is done with once its answers are here: after a resume the engine confirms, with a frame's
// reply, later ones too, whose answers are yet to come again.
void Link::acknowledge(uint64_t executed) {
  for (const Waiter* waiter : waiters_) {
    if (waiter->missing > 0) executed = std::min(executed, waiter->sequence - 1);
  }
  acknowledged_ = std::clamp(executed, acknowledged_, sent_);
}

void Link::end(Error error) {
  if (!over_) over_ = std::move(error);
  releases_.clear();
  waiting_.notify_all();
  sender_.notify_all();
}

// ---- Broken streams

void Link::broke(absl::Status status) {
  if (closing_) return end(Error(ErrorKind::kConnection, "[connection] the session is closed"));
  if (!broken_) broken_ = std::move(status);
}

absl::Status Link::reconnect(const absl::Status& why, int attempt) {
  using Clock = std::chrono::steady_clock;
  // Long enough for a link that flaps, short enough that a caller hears of a dead engine within a second.
  constexpr auto kPatience = std::chrono::milliseconds(700);
  constexpr auto kPause = std::chrono::milliseconds(20);
  if (attempt == 1) in_vain_since_ = Clock::now();
  absl::Status status = why;
  for (bool first = attempt == 1; first || Clock::now() - in_vain_since_ < kPatience; first = false) {
    if (!first) std::this_thread::sleep_for(kPause);
    v1::HelloReply reply;
    status = transport_->hello(hello_, &reply);
    if (absl::IsUnavailable(status)) continue;  // nobody there, or gone again
    if (!status.ok()) return status;
    if (reply.session_key() != engine_.session_key()) return absl::NotFoundError("it has lost the session");
    return transport_->open(engine_.session_key());
  }
  return status;
}

void Link::resume() {
  resuming_ = true;
  absl::Status why = *broken_;
  int attempt = ++resumes_in_vain_;
  absl::Status status;
  {
    MutexUnlock unlocked(mutex_);
    status = reconnect(why, attempt);
  }
  resuming_ = false;
  broken_.reset();
  sent_ = acknowledged_;  // everything without a reply goes out again
  if (!status.ok()) end(Error(ErrorKind::kConnection, gone(*transport_, status.message())));
  role_is_free();
}

// ---- The sender thread

bool Link::has_work_for_sender() const {
  if (stopping_) return true;
  if (over_ || resuming_) return false;
  if (broken_) return !writing_ && !reading_;
  if (!writing_ && may_send()) return true;
  // The window is full: someone has to read until it opens.
  // Likewise where a caller is away in a download that waits for what is in flight.
  return !reading_ && !writing_ && (has_unsent() || ((closing_ || downloads_ > 0) && acknowledged_ < sealed_));
}

bool Link::sender_step() {
  if (!has_work_for_sender() || stopping_) return false;
  if (broken_) {
    resume();
  } else if (!writing_ && may_send()) {
    write_one(Transport::kForever);
  } else {
    read_one(Transport::kForever);
  }
  return true;
}

void Link::sender_sleep() {
  constexpr auto kNap = std::chrono::microseconds(200);
  // gRPC answers the engine's pings, and notices that the connection has ended, only while some thread polls it. The
  // client closes a connection on which a ping is not answered for 10 s, the engine one for 20 s.
  constexpr auto kIdlePoll = std::chrono::seconds(5);
  auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !sender_asleep_ || stopping_; };
  for (uint64_t frames = counters_.frames;; frames = counters_.frames) {
    sender_asleep_ = sender_naps_ = true;
    if (sender_.wait_for(mutex_, kNap, awake)) break;
    if (has_work_for_sender()) {  // it was left to a caller who did not come
      callers_send_ = false;
      break;
    }
    if (counters_.frames != frames) continue;  // callers send by themselves: stay at hand
    if (!releases_.empty() && !over_) {        // no instruction came along to take them
      building_->count_bytes(releases_.size() * sizeof(uint64_t));
      building_->message().mutable_release()->Add(releases_.begin(), releases_.end());
      releases_.clear();
      break;
    }
    sender_naps_ = false;
    while (!sender_.wait_for(mutex_, kIdlePoll, awake) && !has_work_for_sender()) {
      if (!over_ && !broken_ && !resuming_ && !reading_) read_one(std::chrono::milliseconds(0));
    }
    break;
  }
  sender_asleep_ = sender_naps_ = false;
}

void Link::run_sender() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (!sender_step()) sender_sleep();
  }
}

}  // namespace tt::client
