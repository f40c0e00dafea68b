// The session's frames in which windows of instructions are replaced (engine/session/windows.h).
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/program/passes/fuse_pointwise.h"
#include "server/session/session.h"

namespace tt::server {

void Session::compile_windows(std::shared_ptr<WindowCompiler> compiler) {
  MutexLock lock(mutex_);
  windows_ = &context_.services.attach(std::make_unique<Windows>(std::move(compiler)));
}

absl::Span<const Windows::Match> Session::find_windows() {
  if (windows_ == nullptr || context_.autocast.state.enabled() || context_.detect_anomaly ||
      context_.observes_kernels())
    return {};
  return windows_->find(program_, scalar_reads_);
}

// The parts of a frame's Program: windows that are replaced, and the instructions between them.
class Session::PartRuns {
 public:
  PartRuns(Session& session, uint64_t* bytes_left, v1::Reply* reply)
      : session_(session), bytes_left_(bytes_left), reply_(reply) {}

  void run(absl::Span<const Windows::Match> windows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(session_.execution_mutex_, session_.mutex_) {
    size_t begin = 0;  // of the instructions that were not executed yet
    for (const Windows::Match& window : windows) {
      run_as_they_are(begin, window.first);
      begin = window.first;
      if (run_replaced(window)) begin += window.length;
    }
    run_as_they_are(begin, session_.program_.instructions().size());
  }

 private:
  void run_as_they_are(size_t begin, size_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(session_.execution_mutex_, session_.mutex_) {
    Program &program = session_.program_, &part = session_.part_;
    const auto all = absl::MakeConstSpan(program.instructions());
    const bool is_last = end == all.size();
    if (begin == end && !is_last && !is_read(end)) return;
    part.clear();
    part.mutable_instructions().assign(all.begin() + begin, all.begin() + end);
    if (is_last) {
      part.set_outputs(program.outputs());
      part.set_release(program.release());
    }
    std::vector<ReadPoint> reads;
    for (size_t i = answered_; i < session_.scalar_reads_.size(); ++i) {
      const ReadPoint& read = session_.scalar_reads_[i];
      if (read.instruction > end) break;
      reads.push_back({std::max(read.instruction, begin) - begin, read.slot});
    }
    Context& context = session_.context_;
    fuse_pointwise(&part, session_.slots_, reads, context.autocast.state.enabled(), context.observes_kernels());
    if (is_last) program.set_release(part.release());
    execute(part, begin, reads);
  }

  // Whether a read is to be answered before instruction `at`.
  bool is_read(size_t at) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(session_.execution_mutex_, session_.mutex_) {
    return answered_ < session_.scalar_reads_.size() && session_.scalar_reads_[answered_].instruction <= at;
  }

  // Returns false, and executes nothing, if the instructions have to be executed as they are.
  // Requires the session's mutexes; the analysis does not follow references to its members.
  bool run_replaced(const Windows::Match& window) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Context& context = session_.context_;
    Program& program = session_.program_;
    Windows::Replacement& made = session_.replacement_;
    if (context.autocast.state.enabled() || context.detect_anomaly || context.observes_kernels()) return false;
    if (!session_.windows_->replace(window, program, session_.slots_, &made)) return false;
    const size_t end = window.first + window.length;
    execute(made.program, window.first, {});
    // What follows drops the names that the window would have left, and those that it has left.
    const bool is_last = end == program.instructions().size();
    const absl::Span<const Slot> before = is_last ? program.release() : program.instructions()[end].release;
    std::vector<Slot> release = made.dropped;
    for (Slot slot : before) {
      if (!std::binary_search(made.gone.begin(), made.gone.end(), slot)) release.push_back(slot);
    }
    if (is_last) {
      program.set_release(release);
    } else {
      program.mutable_instructions()[end].release = program.memory().copy(absl::MakeConstSpan(release));
    }
    return true;
  }

  // Executes a part that begins with instruction `begin` of the frame. `reads` are the next ones that were not
  // answered, counted from there.
  void execute(const Program& part, size_t begin, absl::Span<const ReadPoint> reads)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(session_.execution_mutex_, session_.mutex_) try {
    for (const ReadPoint& read : reads) {
      session_.run_instructions(part, read.instruction);
      session_.answer_scalar(answered_++, read.slot, bytes_left_, reply_);
    }
    session_.run_instructions(part, Executor::kAll);
  } catch (ProgramFault& fault) {
    fault.instruction += begin;
    throw;
  }

  Session& session_;
  uint64_t* const bytes_left_;
  v1::Reply* const reply_;
  size_t answered_ = 0;  // scalar reads
};

void Session::run_parts(absl::Span<const Windows::Match> windows, uint64_t* bytes_left, v1::Reply* reply) {
  PartRuns(*this, bytes_left, reply).run(windows);
}

}  // namespace tt::server
