// Session: execution of frames.
#include <algorithm>
#include <exception>
#include <memory>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/program/passes/fuse_pointwise.h"
#include "server/convert.h"
#include "server/log.h"
#include "server/session/decode.h"
#include "server/session/session.h"
#include "server/session/values.h"

namespace tt::server {
namespace {

void count_errors(const v1::Reply& reply, FrameTimes* times) {
  if (reply.has_fault()) times->add_error(reply.fault().kind());
  for (const v1::NumberError& each : reply.number_errors()) times->add_error(each.error().kind());
  for (const v1::ReadResult& each : reply.reads()) {
    if (each.has_error()) times->add_error(each.error().kind());
  }
}

}  // namespace

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
  count_errors(*reply, times);
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
      : session_(session),
        turn_(session.options_.queues ? &session.options_.queues->processors : nullptr, session.options_.share.get(),
              &session.flow_) {
    session_.turn_ = &turn_;
  }
  ~RunningTurn() {
    session_.turn_ = nullptr;
    session_.mutex_.assume_held();
    session_.context_.rest_turns();
    const auto waited = static_cast<uint64_t>((turn_.waited() + session_.context_.take_waited()).count());
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
  context_.rest_turns();
  MutexUnlock unlocked(mutex_);
  for (;;) {
    const uint64_t seen = wake_up_->notifications();
    if (suspension.ready() || cancellation_.requested()) break;
    wake_up_->wait(seen, suspension.deadline());
  }
  set_phase(SessionActivity::Phase::kExecute);
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

void Session::release_names() {
  for (Slot handle : program_.release()) {
    check(ErrorKind::kValue, slots_.release(handle), "handle ", handle, " is released but not in use");
  }
}

}  // namespace tt::server
