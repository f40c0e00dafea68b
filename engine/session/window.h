// Window: consecutive instructions of a session's stream that have occurred several times, and what the passes have
// made of them.
//
// A window consists of calls that only compute new results. For each signature of its inputs, the passes that keep the
// bits of single calls run once, on another thread (window_compiler.h). The result replaces the instructions of the
// frame in which the window occurs next (windows.h), so that errors, names and source lines are those of the calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/schema/meta.h"
#include "engine/schema/program.h"

namespace tt {

// What the passes have made of a window for inputs of one signature. The session's thread creates it and reads what
// compile_window() has written once state() is no longer kWaiting.
class WindowVersion {
 public:
  enum class State : uint8_t {
    kWaiting,
    kReady,
    kRejected,  // replacing the calls would gain nothing, or they are invalid or recorded for backward
  };

  // `is_always_ready`: for tests; also if replacing the calls would cost more than it saves.
  explicit WindowVersion(std::vector<TensorMeta> inputs, bool is_always_ready = false)
      : inputs_(std::move(inputs)), is_always_ready_(is_always_ready) {}

  const std::vector<TensorMeta>& inputs() const { return inputs_; }
  State state() const { return state_.load(std::memory_order_acquire); }
  // The following require State::kReady. The names 1, 2, ... are the window's inputs, outputs() are its results that
  // exist afterwards, in order. Names are dropped after their last use; left() are names to drop at the end.
  const Program& program() const { return program_; }
  const std::vector<Slot>& left() const { return left_; }
  Slot largest_name() const { return largest_name_; }
  // What a run saves: instructions beside those that the client sends.
  int64_t saved_instructions() const { return saved_instructions_; }
  int64_t saved_bytes() const { return saved_bytes_; }  // of results that are not stored
  int64_t saved_ns() const { return saved_ns_; }        // estimated time, less that for replacing the calls

  int64_t microseconds() const { return microseconds_.load(std::memory_order_relaxed); }  // that the passes took
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }               // host memory

 private:
  friend void compile_window(const Program& window, WindowVersion* version);

  const std::vector<TensorMeta> inputs_;
  const bool is_always_ready_;
  Program program_;
  std::vector<Slot> left_;
  Slot largest_name_ = 0;
  int64_t saved_instructions_ = 0;
  int64_t saved_bytes_ = 0;
  int64_t saved_ns_ = 0;
  std::atomic<int64_t> microseconds_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<State> state_{State::kWaiting};
};

// Runs the passes. The names 1, 2, ... of `window` are as many inputs as the version has; its outputs are the results
// that exist after the window; it drops no names. Does not throw. Needs no Context, and no other thread may use the
// version's results before its state has changed.
void compile_window(const Program& window, WindowVersion* version);

}  // namespace tt
