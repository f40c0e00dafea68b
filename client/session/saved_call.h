// SavedCall: a call whose tensors for backward are stored by the client, by the engine on the CPU, as copies, or
// nowhere (client/session/saved_tensors.h). In the frame it is enclosed in saved_begin and saved_end, or in saved_begin
// and saved_stop (engine/ops/autograd.yaml).
//
// Used by Session::call(), by one thread. Keeps the call's arguments alive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "client/link/link.h"
#include "client/session/engine_operators.h"
#include "client/session/saved_tensors.h"
#include "client/session/session.h"
#include "client/session/tensor.h"
#include "engine/schema/op.h"

namespace tt::client {

class SavedCall {
 public:
  // Returns nothing if the call is issued without the hooks.
  static std::optional<SavedCall> begin_call(const std::shared_ptr<SavedTensorHooks>& hooks, const Op& op, Args args,
                                             absl::Span<const Tensor> results);
  // Called after the call was issued.
  void end_call(const Op& op, absl::Span<const Tensor> results) const;

  // Throws Error (NotImplementedError) if an engine of another version cannot recompute saved tensors.
  void require(const EngineOperators& operators) const { operators.require(saved_begin(), begin_args()); }
  // Whether the client stores the tensors.
  bool is_stored() const { return hooks_->mode() == SavedTensorHooks::Mode::kClient; }
  // Estimates the size of the instructions that begin() and end() add.
  FrameSize encoded_size(size_t results) const {
    const size_t handles = inputs_.size() + results;
    return {128 + 16 * handles,
            2 * (frame_memory::kInstruction + 3 * frame_memory::kArgument) + frame_memory::kNumber * handles};
  }
  // Number of handles that end() names.
  size_t names() const { return is_stored() ? 1 : 0; }
  // Add the instructions before and after that of the call.
  void begin(Link::Appending& appending) const;
  void end(Link::Appending& appending, Ref<Session> session, absl::Span<const Tensor> results);

  // Waits for the engine's description of the tensors that it has saved. Requires is_stored() and a call of end().
  // Throws RemoteError if the call failed.
  std::vector<int64_t> read_description(Link& link);
  // Sets the saved tensors of the call's node: passes the described tensors to the hooks, and releases them in the
  // engine, or notes that they are recomputed. May throw, because the hooks do.
  void store(Session& session, absl::Span<const int64_t> description, absl::Span<const Tensor> results,
             GraphNode* node) const;

 private:
  SavedCall(std::shared_ptr<SavedTensorHooks> hooks, Args args, int64_t number);
  static const Op& saved_begin();
  std::array<Arg, 3> begin_args() const;

  std::shared_ptr<SavedTensorHooks> hooks_;
  std::vector<Tensor> inputs_;  // of a call whose tensors the client stores
  Tensor description_;
  int64_t stop_ = 0;  // of a call whose tensors the client stores, or whose saved tensors are recomputed
  int64_t number_;    // that begin() of the hooks has returned
  bool keeps_results_;
};

}  // namespace tt::client
