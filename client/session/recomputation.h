// Recomputation: a function whose calls save nothing for backward, and which runs again in each backward pass that
// needs what they would have saved (torch.utils.checkpoint).
//
// The calls that may save tensors are numbered, and the engine assigns what a next run saves to the nodes of the first
// run by these numbers (autograd/nodes/recomputations.h). The calls of a run are made in one thread, with its
// RecomputationRun in CallOptions::saved. Owned by the nodes of the first run's calls, and by the runs. Used by one
// thread at a time, for which end_run() is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "client/session/saved_tensors.h"
#include "client/session/session.h"
#include "engine/schema/op.h"

namespace tt::client {

class RecomputationRun;

class Recomputation : public std::enable_shared_from_this<Recomputation> {
 public:
  // `checks_calls`: whether next runs must make the same calls. The engine checks the saved tensors in any case.
  // `lists_calls`: whether the error for calls that differ lists the calls of the first run.
  Recomputation(bool checks_calls, bool lists_calls);
  virtual ~Recomputation() = default;

  int64_t stop() const { return stop_; }
  size_t num_calls() const { return calls_.size(); }  // of the first run, those that may save tensors or keep results
  std::shared_ptr<RecomputationRun> first_run();
  // `on_complete` is called when the run has made all calls of the first one. It may throw, to end the run.
  std::shared_ptr<RecomputationRun> next_run(std::function<void()> on_complete);

  // Runs the function again with a next_run(). Returns what else the client keeps until the end of the pass, which does
  // not interpret it. May throw.
  virtual std::shared_ptr<void> run_again() = 0;
  // Called after each run_again() that returned, when a pass has taken what the run has saved, or release() was called.
  // Runs of several threads exclude each other from run_again() to end_run(). Must not throw.
  virtual void end_run() = 0;
  // Frees what a next run has saved and no pass has taken.
  void release();
  // Returns and forgets the result of the last call of a next run that saves tensors: if the run has failed in the
  // engine, its error is usually the failed call's.
  Tensor take_last_result() { return std::exchange(last_result_, nullptr); }

 protected:
  // Throws the error for calls that differ between the runs.
  [[noreturn]] virtual void throw_error(const std::string& message) = 0;

 private:
  friend class RecomputationRun;
  struct Call {
    uint16_t op;
    TensorMeta result;  // the first one
    std::string describe() const;
  };
  [[noreturn]] void fail_with_calls(std::string message);

  const bool checks_calls_, lists_calls_;
  const int64_t stop_;
  std::vector<Call> calls_;
  Ref<Session> session_;  // of the calls
  Tensor last_result_;
};

// One run of the function.
class RecomputationRun final : public SavedTensorHooks {
 public:
  RecomputationRun(Mode mode, std::shared_ptr<Recomputation> function, std::function<void()> on_complete);
  // Whether a next run has made all calls of the first one.
  bool is_complete() const { return next_ >= function_->calls_.size(); }
  // Throws Recomputation::throw_error() unless is_complete().
  void check_complete() const;

  // Whether the engine keeps the results of later calls of the first run, or uses them in a next run, which sets this
  // for the same calls. The engine computes results again that are random or were changed in place. Initially not.
  void keep_results(bool keeps) { keeps_results_ = keeps; }
  bool keeps_results() const override { return keeps_results_; }

  Recomputation* recomputation() override { return function_.get(); }
  int64_t begin(const Op& op, const TensorMeta* result) override;
  void end(const Op& op, const TensorMeta* result) override;
  void recorded(absl::Span<const Tensor> results) override;
  std::shared_ptr<void> pack(const Tensor&) override { return nullptr; }  // not called in these modes
  Tensor unpack(const std::shared_ptr<void>&, bool) override { return nullptr; }

 private:
  const std::shared_ptr<Recomputation> function_;
  const std::function<void()> on_complete_;
  bool keeps_results_ = false;
  size_t next_ = 0;  // number of calls that the next run has made
};

}  // namespace tt::client
