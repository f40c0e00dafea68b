// Context: what a call inherits from its session. One a session, current on the thread that
// executes for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "engine/allocator.h"
#include "engine/events.h"
#include "engine/fault_log.h"
#include "engine/generator.h"
#include "engine/graphs.h"
#include "engine/key_set.h"
#include "engine/stream.h"

namespace tt {

// What a floor above keeps for a session.
class ContextPart {
 public:
  virtual ~ContextPart() = default;
  // Host memory that it takes beside tensors' bytes, about.
  virtual uint64_t host_bytes() const { return 0; }
};

struct Context {
  bool grad_enabled = true;     // set from each instruction's flags
  bool inference = false;       // results are never recorded, and cannot be later
  bool detect_anomaly = false;  // check every gradient for NaN, remember where nodes were made
  bool allow_tf32 = false;      // float32 may be multiplied with fewer bits, by devices that have units for it
  KeySet modes;                 // kProfiler and kAutocast, where they are turned on
  uint32_t site = 0;            // of the instruction that runs: the client's number for a line
  Generator generator;
  std::shared_ptr<Account> account;
  std::function<std::string(uint32_t)> describe_site;  // "train.py:12 in step"; may be empty
  std::unique_ptr<ContextPart> tape;                   // autograd's
  uint64_t host_bytes = 0;  // of the session's bookkeeping: what is neither its handles' nor the tape's

  // The order of this context's work on a device: a stream of the session's own, leased at first use; the device's
  // where there is no session. Throws Error on a device that is not there.
  Stream& stream(Device device);
  // Of all its streams together.
  ReplayCounts replays() const;
  // What this context's calls on devices may still turn out to have done.
  FaultLog& faults();
  Events events;
  bool has_faults() const { return faults_ && !faults_->empty(); }
  Graphs& graphs();
  bool capturing() const { return graphs_ && graphs_->capturing(); }
  // The next `count` blocks of random numbers, for a device's kernel.
  DrawPlace draw(uint64_t count) {
    if (capturing()) return graphs_->draw(count);
    return {generator.seed, generator.advance(count)};
  }

  // Ends what the session has on devices. Requires that no tensor of it is left.
  void close();

  // The calling thread's; a default one where none was set.
  static Context& current();

 private:
  absl::InlinedVector<std::unique_ptr<Stream>, 1> streams_;  // a device each
  std::unique_ptr<FaultLog> faults_;
  std::unique_ptr<Graphs> graphs_;
};

// Makes `context` current on this thread, and restores the old one.
class ContextScope {
 public:
  explicit ContextScope(Context* context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  Context* saved_;
};

// Turns gradient recording on or off for a block.
class GradMode {
 public:
  explicit GradMode(bool enabled) : saved_(Context::current().grad_enabled) {
    Context::current().grad_enabled = enabled;
  }
  ~GradMode() { Context::current().grad_enabled = saved_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool saved_;
};

}  // namespace tt
