#include "server/session/session.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "distributed/group_service.h"
#include "distributed/pull_service.h"
#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/program/passes/fuse_pointwise.h"
#include "server/checkpoint/service.h"
#include "server/convert.h"
#include "server/log.h"
#include "server/session/decode.h"
#include "server/session/publish_service.h"
#include "server/text.h"
#include "server/transfer/device_reader.h"
#include "server/transfer/host_reader.h"

namespace tt::server {
namespace {

// How often a waiting download calls `should_continue`.
constexpr std::chrono::milliseconds kPollInterval{50};
// Bytes of replies that a session may always keep.
constexpr uint64_t kMinKeptBytes = uint64_t{256} << 10;
constexpr size_t kNumberBytes = 16;  // per element in v1::Reply::numbers
// A segment may use at most 1 / kSegmentShare of the session's memory limit.
constexpr uint64_t kSegmentShare = 8;

v1::Error lost_answer() {
  return to_wire(Error(ErrorKind::kRuntime, "the value was in a reply that was lost with the connection"));
}

// Error messages count towards the size limit of a reply, as values do. They are truncated if no room is left.
void limit_message(v1::Error* error, uint64_t* bytes_left) {
  constexpr size_t kShort = 128;
  if (error->message().size() > std::max<size_t>(kShort, *bytes_left))
    error->set_message(valid_utf8(error->message(), kShort));
  *bytes_left -= std::min<uint64_t>(*bytes_left, error->message().size());
}

void set_error(v1::Error error, uint64_t* bytes_left, v1::ReadResult* result) {
  limit_message(&error, bytes_left);
  *result->mutable_error() = std::move(error);
}

bool on_cpu(const Tensor& tensor) { return tensor.device().type == DeviceType::kCPU; }

size_t byte_size(const Tensor& tensor) { return static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype()); }

// Returns the tensor with its elements in logical order, on its device.
Tensor packed(const Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  Tensor copy = empty(tensor.sizes(), tensor.dtype(), tensor.device());
  copy_into(copy, tensor);
  return copy;
}

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
  slots_.set_limit(options_.limits.max_handles);
  content_index_->add(contents_);
  context_.account = account_;
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

// Registers a frame as running while it is executed, so that it can be cancelled.
class Session::RunningFrame {
 public:
  RunningFrame(Session& session, uint64_t sequence) : session_(session) {
    MutexLock lock(session_.progress_mutex_);
    session_.cancellation_.reset();
    if (sequence <= session_.cancel_through_) session_.cancellation_.request(CancelReason::kClient);
    // The session has ended since the frame was accepted, perhaps before the reset.
    if (session_.stopped_.load(std::memory_order_acquire)) session_.cancellation_.request(CancelReason::kEnded);
    session_.running_.store(sequence, std::memory_order_relaxed);
  }
  ~RunningFrame() {
    MutexLock lock(session_.progress_mutex_);
    session_.running_.store(0, std::memory_order_relaxed);
    if (session_.waiting_ != 0) session_.progress_.notify_all();
  }
  RunningFrame(const RunningFrame&) = delete;
  RunningFrame& operator=(const RunningFrame&) = delete;

 private:
  Session& session_;
};

void Session::wait_for_release() {
  MutexLock lock(progress_mutex_);
  while (is_held_.load(std::memory_order_relaxed) && !stopped_ && !is_parked()) released_.wait(progress_mutex_);
}

void Session::park() {
  MutexLock lock(progress_mutex_);
  parked_.store(true, std::memory_order_release);
  released_.notify_all();
}

void Session::execute(const v1::Frame& frame, v1::Reply* reply, FrameArrival arrival) {
  MutexLock execution(execution_mutex_);
  while (is_held_.load(std::memory_order_acquire) && !stopped_) [[unlikely]] {
      MutexUnlock unlocked(execution_mutex_);  // hold() acquires it
      wait_for_release();
      if (is_parked()) return;
    }
  MutexLock lock(mutex_);
  arrival_ = arrival;
  FrameTimes* const times = options_.frame_times.get();
  SessionTrace* const trace = options_.trace.get();
  const uint64_t started = times || trace ? Profiler::now() : 0;
  FrameCounts before;
  if (trace) [[unlikely]]
    before = counts();
  std::string internal;  // message of an error in the engine; only this session ends
  try {
    execute_next(frame, reply);
  } catch (const ProgramFault& fault) {
    refuse(fault.error, fault.instruction, reply);
  } catch (const Error& error) {
    refuse(error, static_cast<size_t>(frame.instructions_size()), reply);
  } catch (const std::exception& error) {
    internal = error.what();
  } catch (...) {
    internal = "an exception of unknown type";
  }
  if (!internal.empty()) {
    log_line(LogLevel::kError, {id(), principal()},
             absl::StrCat("session ", id(), ": internal error in frame ", frame.sequence(), ": ", internal));
    refuse(Error(ErrorKind::kRuntime, absl::StrCat("internal error: ", internal)), 0, reply);
  }
  note_use();
  reply->set_executed(executed());
  if (const uint64_t frame = persisted(); frame != 0) reply->set_persisted(frame);
  set_phase(SessionActivity::Phase::kIdle);
  if (trace && (executed() != before.executed || reply->has_fault())) [[unlikely]]
    trace_frame(frame, *reply, arrival, started, before);
  if (!times) return;
  if (arrival.received != 0) times->waiting.add(started - std::min(started, arrival.received));
  times->executing.add(Profiler::now() - started);
}

Session::FrameCounts Session::counts() const {
  return {executed(), executor_.stats().failed, waited_ns_.load(std::memory_order_relaxed)};
}

void Session::trace_frame(const v1::Frame& frame, const v1::Reply& reply, FrameArrival arrival, uint64_t started,
                          const FrameCounts& before) {
  const FrameCounts after = counts();
  options_.trace->frame(frame, reply,
                        {.duration = Profiler::now() - started,
                         .waited = arrival.received == 0 ? 0 : started - std::min(started, arrival.received),
                         .queued = after.queued - before.queued,
                         .bytes = arrival.bytes,
                         .failed = after.failed - before.failed});
}

void Session::execute_next(const v1::Frame& frame, v1::Reply* reply) {
  uint64_t last = executed();
  if (has_ended()) {
    *reply->mutable_fault() = to_wire(ended());
  } else if (frame.sequence() <= last && frame.sequence() != 0) {
    repeat(frame, reply);
  } else if (frame.sequence() != last + 1) {
    refuse(Error(ErrorKind::kValue, absl::StrCat("expected frame ", last + 1, ", got ", frame.sequence())), 0, reply);
  } else {
    run(frame, reply);
  }
}

void Session::run(const v1::Frame& frame, v1::Reply* reply) {
  ContextScope context(&context_);
  uint64_t bytes_left = reply_room();
  run_program(frame, &bytes_left, reply);
  if (cancellation_.reason() == CancelReason::kEnded) {
    *reply->mutable_fault() = to_wire(ended());
    return free_everything();
  }
  set_phase(SessionActivity::Phase::kReply);
  store_async_errors();
  for (const PoisonRef& poison : delivered_) acknowledge(poison);
  delivered_.clear();
  answer_reads(frame, false, &bytes_left, reply);
  release_names();
  if (is_offloaded()) [[unlikely]]
    drop_released();
  program_.clear();  // frees the memory of a large program
  part_.clear();
  replacement_.program.clear();
  account_->set_handles(slots_.size());
  account_->set_program(program_.bytes());
  download_states_->sweep();
  contents_->sweep();
  replies_.forget(frame.received());
  publish(frame.sequence());
  reply->set_executed(frame.sequence());
  keep(frame.sequence(), *reply);
  if (Profiler* profiler = context_.profiler()) [[unlikely]]
    profiler->end_frame();
  if (frame.close()) free_everything();
}

// Makes the thread's Turn known to the session, which pauses it while an instruction is suspended.
class Session::RunningTurn {
 public:
  explicit RunningTurn(Session& session)
      : session_(session), turn_(session.options_.queue.get(), session.options_.share.get(), &session) {
    session_.turn_ = &turn_;
  }
  ~RunningTurn() {
    session_.turn_ = nullptr;
    const auto waited = static_cast<uint64_t>(turn_.waited().count());
    if (waited != 0) session_.waited_ns_.fetch_add(waited, std::memory_order_relaxed);
  }
  RunningTurn(const RunningTurn&) = delete;
  RunningTurn& operator=(const RunningTurn&) = delete;

 private:
  Session& session_;
  Turn turn_;
};

void Session::run_program(const v1::Frame& frame, uint64_t* bytes_left, v1::Reply* reply) {
  set_phase(SessionActivity::Phase::kPrepare);
  sites_->add(frame);
  check(ErrorKind::kValue, frame.sizes().empty(), "sizes are part of the definition of a Program, got ",
        frame.sizes_size(), " in a frame");
  decode(frame, options_.limits, &program_);
  decode_scalar_reads(frame, options_.limits, &scalar_reads_);
  const RunningFrame running(*this, frame.sequence());
  const CancellationScope scope(&cancellation_);
  if (is_offloaded() && needs_values(frame)) [[unlikely]]
    bring_back();
  const RunningTurn turn(*this);
  const absl::Span<const Windows::Match> windows = find_windows();
  if (windows.empty()) {
    fuse_pointwise(&program_, slots_, scalar_reads_, context_.autocast.state.enabled(), context_.observes_kernels());
  }
  account_->set_program(program_.bytes());
  if (Profiler* profiler = context_.profiler()) [[unlikely]]
    profiler->begin_frame({frame.sequence(), arrival_.awaited, arrival_.received});
  set_phase(SessionActivity::Phase::kExecute);
  if (!scalar_reads_.empty()) {
    reply->set_first_number(frame.first_number());
    reply->mutable_numbers()->resize(kNumberBytes * scalar_reads_.size());
  }
  if (!windows.empty()) return run_parts(windows, bytes_left, reply);
  for (size_t i = 0; i < scalar_reads_.size(); ++i) {
    run_instructions(program_, scalar_reads_[i].instruction);
    answer_scalar(i, scalar_reads_[i].slot, bytes_left, reply);
  }
  run_instructions(program_, Executor::kAll);
}

// A frame that only releases tensors, creates some, or ends the session needs no values. Operators without results
// change the session's state: what they begin, such as the capture of a graph, may not continue while values are
// absent.
bool Session::needs_values(const v1::Frame& frame) const {
  return !scalar_reads_.empty() ||
         absl::c_any_of(frame.reads(), [](const v1::Read& read) { return !read.meta_only(); }) ||
         absl::c_any_of(program_.instructions(), [](const Instruction& instruction) {
           return instruction.op->num_outputs == 0 || Executor::uses_tensors(instruction);
         });
}

void Session::run_instructions(const Program& program, size_t count) {
  while (const std::shared_ptr<Suspension> suspension = executor_.run(program, slots_, count)) wait_for(*suspension);
}

void Session::wait_for(Suspension& suspension) {
  const Cancellation::Pause pause;  // the pause does not count towards the frame's time limit
  set_phase(SessionActivity::Phase::kSuspended);
  const Turn::Pause without_turn(*turn_);
  MutexUnlock unlocked(mutex_);
  for (;;) {
    const uint64_t seen = wake_up_->notifications();
    if (suspension.ready() || cancellation_.requested()) break;
    wake_up_->wait(seen, suspension.deadline());
  }
  set_phase(SessionActivity::Phase::kExecute);
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

void Session::reject(const Error& error, v1::Reply* reply) {
  MutexLock execution(execution_mutex_);
  MutexLock lock(mutex_);
  if (over()) {
    *reply->mutable_fault() = to_wire(ended());
  } else {
    refuse(error, 0, reply);
  }
  reply->set_executed(executed());
}

// Keeps a reply if the account has room. Kept replies count as bookkeeping of the account from the next frame on.
void Session::keep(uint64_t sequence, const v1::Reply& reply) {
  replies_.keep(sequence, reply,
                std::min(options_.limits.max_kept_bytes, replies_.bytes() + account_->host_room() + kMinKeptBytes));
  context_.host_bytes = sites_->bytes() + replies_.bytes();
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

void Session::refuse(const Error& error, size_t instruction, v1::Reply* reply) {
  reply->Clear();
  v1::Error* fault = reply->mutable_fault();
  *fault = to_wire(error);
  fault->set_message(absl::StrCat("frame refused at instruction ", instruction, ": ", fault->message()));
  free_everything();
}

void Session::repeat(const v1::Frame& frame, v1::Reply* reply) {
  if (is_offloaded() && frame.reads_size() != 0) [[unlikely]]
    bring_back();
  replies_.forget(frame.received());
  const Replies::Kept kept = replies_.find(frame.sequence());
  if (kept.reply != nullptr) {
    *reply = *kept.reply;
    if (kept.has_reads) return;
  } else {
    fail_numbers(frame, reply);
  }
  uint64_t bytes_left = reply_room();
  answer_reads(frame, true, &bytes_left, reply);
}

uint64_t Session::reply_room() const {
  return std::min(options_.limits.max_reply_bytes, account_->host_room() + kMinKeptBytes);
}

void Session::answer_reads(const v1::Frame& frame, bool again, uint64_t* bytes_left, v1::Reply* reply) {
  for (const v1::Read& read : frame.reads()) answer(read, again, bytes_left, reply->add_reads());
}

// Numbers do not count towards the size limit of the reply: their number is limited, and the client cannot read them
// later.
void Session::answer_scalar(size_t index, Slot slot, uint64_t* bytes_left, v1::Reply* reply) {
  const SlotValue* value = slots_.find(slot);
  check(ErrorKind::kValue, value != nullptr, "handle ", slot, " is not in use");
  std::optional<v1::Error> error = error_of(*value, false);
  if (error) {
    if (value->poison) delivered_.push_back(value->poison);
  } else if (value->tensor.numel() != 1 || !on_cpu(value->tensor)) {
    error = to_wire(Error(ErrorKind::kValue, absl::StrCat("expected a tensor on the CPU with one element, got one on ",
                                                          to_string(value->tensor.device()), " with ",
                                                          value->tensor.numel(), " elements")));
  } else {
    std::memcpy(reply->mutable_numbers()->data() + kNumberBytes * index, value->tensor.data(),
                item_size(value->tensor.dtype()));
  }
  if (!error) return;
  limit_message(&*error, bytes_left);
  v1::NumberError* failed = reply->add_number_errors();
  failed->set_index(static_cast<uint32_t>(index));
  *failed->mutable_error() = *std::move(error);
}

void Session::fail_numbers(const v1::Frame& frame, v1::Reply* reply) {
  const auto count =
      std::min<size_t>(static_cast<size_t>(frame.scalar_reads_size()) / 2, options_.limits.max_scalar_reads);
  if (count == 0) return;
  reply->set_first_number(frame.first_number());
  reply->mutable_numbers()->resize(kNumberBytes * count);
  for (size_t i = 0; i < count; ++i) {
    v1::NumberError* failed = reply->add_number_errors();
    failed->set_index(static_cast<uint32_t>(i));
    *failed->mutable_error() = lost_answer();
  }
}

// An unknown name is a fault when a frame is first executed. In a repeated frame the name may have been released since.
void Session::answer(const v1::Read& read, bool again, uint64_t* bytes_left, v1::ReadResult* result) {
  result->set_request(read.request());
  const SlotValue* value = slots_.find(read.handle());
  if (value == nullptr) {
    check(ErrorKind::kValue, again, "handle ", read.handle(), " is not in use");
    return set_error(lost_answer(), bytes_left, result);
  }
  if (std::optional<v1::Error> error = error_of(*value, read.meta_only())) {
    acknowledge(value->poison);
    return set_error(*std::move(error), bytes_left, result);
  }
  *result->mutable_tensor() = to_wire(value->tensor.meta());
  if (read.meta_only()) return;
  const size_t bytes = byte_size(value->tensor);
  if (bytes > std::min(*bytes_left, options_.limits.max_inline_bytes)) return;  // the client uses Download
  *bytes_left -= bytes;
  result->mutable_data()->resize(bytes);
  if (bytes == 0) return;
  if (on_cpu(value->tensor)) {
    HostReader(value->tensor).read(result->mutable_data()->data(), bytes);
  } else if (std::optional<v1::Error> error = read_from_device(read.handle(), value->tensor, result->mutable_data())) {
    result->clear_data();
    set_error(*std::move(error), bytes_left, result);
  }
}

// Reads a small value in the compute stream, because the value is usually the stream's latest result.
std::optional<v1::Error> Session::read_from_device(uint64_t handle, const Tensor& tensor, std::string* bytes) try {
  ContextScope scope(&context_);
  const Tensor source = packed(tensor);
  const Staging staging(downloads_, tensor.device(), bytes->size());
  Stream& stream = context_.stream(tensor.device());
  stream.copy(staging.data(), source.data(), bytes->size());
  stream.synchronize();
  bytes->assign(staging.data(), bytes->size());
  return poison_of(handle, tensor->storage->pending_errors);
} catch (const Error& error) {
  return to_wire(error);
}

// Requires that the device has finished the work that `pending_errors` depends on.
std::optional<v1::Error> Session::poison_of(uint64_t handle, const PendingErrors& pending_errors) {
  std::shared_ptr<const Poison> found = context_.async_errors().find_error(pending_errors);
  store_async_errors();
  if (const SlotValue* value = slots_.find(handle); value && value->poison) found = value->poison;
  if (!found) return std::nullopt;
  acknowledge(found);
  return to_wire(*found);
}

// Records that the client has received the error. Does nothing while a frame is suspended, because the client sent the
// frame's remaining instructions before it received the error.
void Session::acknowledge(const PoisonRef& poison) {
  if (!busy()) slots_.acknowledge(poison);
}

// Stores errors that the devices have found since the last call in place of the affected values.
void Session::store_async_errors() {
  if (context_.has_async_errors()) context_.async_errors().retire_completed(slots_);
}

void Session::release_names() {
  for (Slot handle : program_.release()) {
    check(ErrorKind::kValue, slots_.release(handle), "handle ", handle, " is released but not in use");
  }
}

MemoryWait Session::wait_for_frames(std::chrono::steady_clock::time_point* idle_since,
                                    absl::FunctionRef<bool()> should_continue) {
  // The end of a frame wakes this wait. Memory that is released during a frame or by another thread, and the end of the
  // call, are polled: an event for each refund of an account would slow down every tensor that is freed, and gRPC's
  // synchronous calls report their end only to IsCancelled().
  constexpr auto kPoll = std::chrono::milliseconds(20), kIdle = std::chrono::milliseconds(200);
  constexpr int kMaxPolls = 25;  // other sessions may release memory too
  const uint64_t before = executed(), held = account_->held();
  for (int i = 0; i < kMaxPolls; ++i) {
    {
      MutexLock lock(progress_mutex_);
      ++waiting_;
      progress_.wait_for(progress_mutex_, kPoll);
      --waiting_;
    }
    const auto now = std::chrono::steady_clock::now();
    const bool has_executed = executed() != before;
    if (busy() || has_executed) *idle_since = now;
    if (!should_continue()) return MemoryWait::kCancelled;
    if (has_ended() || now - *idle_since >= kIdle) return MemoryWait::kNoMore;
    // An attempt that cannot succeed would return the pool's unused memory to the system.
    if (has_executed || account_->held() < held) break;
  }
  return MemoryWait::kRetry;
}

absl::StatusOr<std::unique_ptr<TransferMonitor::Call>> Session::begin_call(TransferMonitor::Direction direction,
                                                                           std::function<void()> cancel) {
  return monitor_->begin(options_.id, direction, std::move(cancel), options_.quota);
}

absl::StatusOr<std::unique_ptr<Upload>> Session::begin_upload(uint64_t transfer, uint64_t bytes, Device device,
                                                              bool resume, const TransferMonitor::Call* call,
                                                              const std::string& digest,
                                                              absl::FunctionRef<bool()> should_continue) {
  auto idle_since = std::chrono::steady_clock::now();
  auto upload = transfers_->begin(transfer, bytes, device, resume, digest,
                                  [&] { return wait_for_frames(&idle_since, should_continue); });
  if (absl::IsAlreadyExists(upload.status())) monitor_->cancel_upload(options_.id, transfer, call);
  if (!upload.ok() || digest.empty() || (*upload)->received() != 0) return upload;
  if (Ref<Storage> source = content_index_->find(digest, bytes)) {
    (*upload)->copy_from(*source);
    source = nullptr;
    content_index_->drop_unreferenced();
  }
  return upload;
}

absl::StatusOr<Download> Session::begin_download(uint64_t handle, uint64_t after,
                                                 absl::FunctionRef<bool()> should_continue,
                                                 const DownloadResume& resume) {
  {
    MutexLock lock(progress_mutex_);
    ++waiting_;
    while (executed() < after && !over() && should_continue()) progress_.wait_for(progress_mutex_, kPollInterval);
    --waiting_;
  }
  MutexLock lock(mutex_);
  if (over()) return absl::NotFoundError("the session has ended");
  if (executed() < after) return absl::CancelledError("the download was cancelled");
  note_use();
  if (is_offloaded()) [[unlikely]]
    bring_back();
  const SlotValue* value = slots_.find(handle);
  if (value == nullptr) return absl::InvalidArgumentError(absl::StrCat("handle ", handle, " is not in use"));
  Download download;
  download.error = error_of(*value, false);
  if (download.error) {
    acknowledge(value->poison);
    return download;
  }
  const Tensor tensor = value->tensor;
  download.tensor = to_wire(tensor.meta());
  if (resume.state != 0 && resume.offset <= byte_size(tensor) && resume.offset % item_size(tensor.dtype()) == 0 &&
      download_states_->matches(resume.state, tensor, executor_.stats())) {
    download.state = resume.state;
    download.offset = resume.offset;
  } else if (byte_size(tensor) > resume.keep_above) {
    download.state = download_states_->add(tensor, executor_.stats());
  }
  if (on_cpu(tensor)) {
    download.bytes = std::make_unique<HostReader>(tensor);
  } else {
    download_from_device(handle, tensor, &download);
  }
  if (download.bytes && download.offset != 0) download.bytes->skip(download.offset);
  return download;
}

// Releases the lock while the device computes, so that other frames need not wait.
void Session::download_from_device(uint64_t handle, Tensor tensor, Download* download) try {
  const PendingErrors pending_errors = tensor->storage->pending_errors;
  std::unique_ptr<Event> computed;
  {
    ContextScope scope(&context_);
    tensor = detach(packed(tensor));  // without history, because the copy may be destroyed on another thread
    computed = context_.stream(tensor.device()).record();
  }
  {
    MutexUnlock unlocked(mutex_);
    computed->synchronize();
  }
  download->error = poison_of(handle, pending_errors);
  if (!download->error) download->bytes = std::make_unique<DeviceReader>(downloads_, tensor);
} catch (const Error& error) {
  download->error = to_wire(error);
}

std::shared_ptr<SharedSegment> Session::segment() const {
  MutexLock lock(progress_mutex_);
  return segment_;
}

absl::StatusOr<std::shared_ptr<SharedSegment>> Session::segment_of(uint64_t nonce) const {
  std::shared_ptr<SharedSegment> current = segment();
  if (!current) return absl::FailedPreconditionError("the session has no shared memory");
  if (current->nonce() != nonce) return absl::FailedPreconditionError("the session's shared memory has been replaced");
  return current;
}

std::shared_ptr<SharedSegment> Session::offer_segment() {
  const uint64_t limit = account_->limit();
  const bool is_small = limit == 0 || shared_ring::kSegmentBytes <= limit / kSegmentShare;
  std::shared_ptr<SharedSegment> fresh;
  if (is_small && account_->has_host_room(shared_ring::kSegmentBytes)) fresh = SharedSegment::create(account_);
  std::shared_ptr<SharedSegment> replaced = fresh;
  MutexLock lock(progress_mutex_);
  segment_.swap(replaced);  // the old segment is destroyed after the lock is released, and may wait for a device
  return fresh;
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
  const int position = options_.queue ? options_.queue->position(this) : -1;
  status.set_queue_position(position + 1);
  status.set_state(position >= 0 ? "queued" : phase_name(activity().phase));
  return status;
}

}  // namespace tt::server
