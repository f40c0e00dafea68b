// Tape: what a session's Context keeps for autograd: the order of operations, and the backward
// passes that wait for the client's own code.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "engine/session/context.h"

namespace tt::autograd {

class History;
class Task;

// Every history that a session has made and not dropped. Gradients and functions of a client's making may refer to each
// other in circles; when the session ends they are severed, so that its tensors are freed whatever it did.
class HistoryList {
 public:
  void add(History& history);
  static void remove(History& history);
  void sever();

 private:
  History* first_ = nullptr;
};

// Counts the host memory of a session's nodes, which may outlive its tape. Used as they are, by the session's thread.
class TapeMeter {
 public:
  uint64_t bytes() const { return bytes_; }
  void enter() { ++users_; }
  void add(int64_t bytes) { bytes_ += static_cast<uint64_t>(bytes); }
  // The last user ends it.
  void leave() {
    if (--users_ == 0) delete this;
  }

 private:
  uint64_t users_ = 0;
  uint64_t bytes_ = 0;
};

class Tape final : public SessionService {
 public:
  Tape();
  ~Tape() override;
  uint64_t host_bytes() const override { return meter_->bytes(); }
  TapeMeter& meter() { return *meter_; }
  // The current Context's, made when first asked for.
  static Tape& current();

  uint64_t next_sequence() { return ++sequence_; }

  // Backward passes by the client's number. `find` throws Error where there is none; `add` where
  // the number is in use or too many are under way.
  void add(int64_t number, std::unique_ptr<Task> task);
  Task& find(int64_t number) const;
  void drop(int64_t number);
  size_t num_tasks() const { return tasks_.size(); }

  HistoryList& histories() { return histories_; }

 private:
  TapeMeter* const meter_;
  uint64_t sequence_ = 0;
  HistoryList histories_;
  absl::flat_hash_map<int64_t, std::unique_ptr<Task>> tasks_;
};

}  // namespace tt::autograd
