// Tape: autograd's per-session state: the order of operations, the histories, and the backward passes that wait for the
// client's code.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "autograd/nodes/recomputations.h"
#include "autograd/nodes/saved_bytes.h"
#include "autograd/nodes/saved_nodes.h"
#include "engine/session/context.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

class History;

// A backward pass that has not ended (autograd/graph_task.h).
class Pass {
 public:
  virtual ~Pass() = default;
  // Called if the pass has failed or is abandoned: some leaves have their gradient, some do not, and one may be
  // incomplete. Reading these gradients, or adding to them, throws `error` until they are set.
  virtual void invalidate_gradients(const Error& error) = 0;
};

// All live histories of a session. Gradients and client functions may form reference cycles. break_cycles() breaks them
// when the session ends, so that all tensors are freed.
class HistoryList {
 public:
  void add(History& history);
  static void remove(History& history);
  void break_cycles();

 private:
  History* first_ = nullptr;
};

// Counts the host memory of a session's nodes, which may outlive its tape. Not synchronized: only the session's thread
// uses it.
class TapeMeter {
 public:
  uint64_t bytes() const { return bytes_; }
  void enter() { ++users_; }
  void add(int64_t bytes) { bytes_ += static_cast<uint64_t>(bytes); }
  // Deletes the meter if it has no other users.
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
  uint64_t host_bytes() const override {
    return meter_->bytes() + saved_.host_bytes() + saved_bytes_.host_bytes() + recomputations_.host_bytes() +
           data_writes_.capacity() * sizeof(DataWrites::value_type);
  }
  // Invalidates the gradients that a backward pass which is not executed should have added to.
  void skipped(const Op& op, Args args, const Error& error, uint32_t site) override;
  std::string unsaved() const override;
  TapeMeter& meter() { return *meter_; }
  // Returns the current Context's tape, created on first use.
  static Tape& current();

  uint64_t next_sequence() { return ++sequence_; }

  // Backward passes by the client's number. `find` throws Error if the number is unknown, `add` if the number is in use
  // or too many passes are running.
  void add(int64_t number, std::shared_ptr<Pass> pass);
  Pass& find(int64_t number) const;
  void drop(int64_t number);
  size_t num_passes() const { return passes_.size(); }

  // Keeps the pass of the current instruction until the instruction runs again after its suspension.
  void suspend(std::shared_ptr<Pass> pass) { suspended_ = std::move(pass); }
  // Returns the pass that the instruction left; null at its first run.
  std::shared_ptr<Pass> take_suspended() { return std::exchange(suspended_, nullptr); }

  // The number of in-place writes to the tensor's storage, without those through `.data`, plus a constant per storage.
  // A saved tensor is unchanged if this number is. Called for every saved tensor.
  uint32_t tracked_version(const Tensor& tensor) const {
    if (data_writes_.empty()) [[likely]]
      return tensor.version();
    auto found = data_writes_.find(tensor->storage.get());
    return tensor.version() - (found == data_writes_.end() ? 0 : found->second);
  }
  // Excludes the last write to the tensor's storage from tracked_version().
  void count_data_write(const Tensor& tensor) { ++data_writes_[tensor->storage.get()]; }

  HistoryList& histories() { return histories_; }
  SavedNodes& saved() { return saved_; }
  SavedBytes& saved_bytes() { return saved_bytes_; }
  Recomputations& recomputations() { return recomputations_; }

 private:
  friend class TapeImage;
  // The numbers of writes through `.data`, by storage. An entry is not removed with its storage: a later storage at the
  // same address continues the number, which only shifts its tracked versions. There are therefore at most as many
  // entries as storages that have existed at the same time.
  using DataWrites = absl::flat_hash_map<const Storage*, uint32_t>;

  TapeMeter* const meter_;
  uint64_t sequence_ = 0;
  HistoryList histories_;
  SavedNodes saved_;
  SavedBytes saved_bytes_;
  Recomputations recomputations_;
  absl::flat_hash_map<int64_t, std::shared_ptr<Pass>> passes_;
  std::shared_ptr<Pass> suspended_;
  DataWrites data_writes_;
};

}  // namespace tt::autograd
