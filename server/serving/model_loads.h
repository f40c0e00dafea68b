// ModelLoads: the loads of models in progress, of which there is at most one per model.
//
// A load reads, converts and warms up a version, which may take long, without a lock. It ends early when its caller
// does not wait any more, when its time is over, or when cancel() or stop() ends it: then the work that runs with its
// Cancellation throws Cancelled. The places are divided among the owners of models, so that the loads of one principal
// do not delay those of others. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine/device/cancellation.h"
#include "server/serving/cancel_watch.h"

namespace tt::server {

class ModelLoads {
 public:
  using Clock = std::chrono::steady_clock;
  // Loads in progress of models with an owner, and as many of models without one; of one owner; and those in addition
  // to the first numbers that are the only load of their owner.
  static constexpr size_t kMaxLoads = 32, kMaxLoadsOfOwner = 4, kReserve = 8;
  // Of them, loads that began less than kSlowLoad ago: slow loads do not delay others.
  static constexpr size_t kMaxRecentLoads = 8;
  static constexpr std::chrono::seconds kSlowLoad{10};

  // Whether the caller still waits and may load models. Called by the thread of CancelWatch; may be empty.
  using IsWanted = std::function<bool()>;

  // One load, which ends with the object. Used by one thread.
  class Load {
   public:
    ~Load();
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;

    // Current on the thread that loads (CancellationScope).
    Cancellation& cancellation() { return cancellation_; }
    // Why the load was ended early; OK if it was not.
    absl::Status status() const;

   private:
    friend class ModelLoads;
    Load(ModelLoads& loads, std::string model, std::string owner, IsWanted is_wanted, Clock::duration time_limit);

    ModelLoads& loads_;
    const std::string model_, owner_;
    const IsWanted is_wanted_;
    const Clock::time_point began_, deadline_;
    Cancellation cancellation_;
    const CancelWatch::Work watched_;
  };

  // `ended` is called after each load, on its thread, without a lock.
  ModelLoads(CancelWatch& watch, std::chrono::milliseconds time_limit, std::function<void()> ended);

  // Waits until no other load of the model is in progress and a place is free. CANCELLED if the caller does not wait
  // any more, DEADLINE_EXCEEDED after the time limit, UNAVAILABLE after stop().
  absl::StatusOr<std::unique_ptr<Load>> begin(const std::string& model, const std::string& owner, IsWanted is_wanted);
  // The same without waiting: null if the model is being loaded, or all places are taken.
  std::unique_ptr<Load> try_begin(const std::string& model, const std::string& owner);
  // Ends the model's load, if it has one, soon.
  void cancel(const std::string& model);
  // Ends all loads soon, and refuses others.
  void stop();
  bool has(const std::string& model) const;

 private:
  bool has_place(const std::string& model, const std::string& owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<Load> add(const std::string& model, const std::string& owner, IsWanted is_wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end(Load& load);

  CancelWatch& watch_;
  const std::chrono::milliseconds time_limit_;
  const std::function<void()> ended_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Load*> loads_ ABSL_GUARDED_BY(mutex_);  // by model
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tt::server
