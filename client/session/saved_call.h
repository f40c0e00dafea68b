// SavedCall: a call whose tensors for backward are stored by the client, by the engine on the CPU, or as copies
// (client/session/saved_tensors.h). In the frame it is enclosed in saved_begin and saved_end, or in saved_begin and
// saved_stop (engine/ops/autograd.yaml).
//
// Used by Session::call(), by one thread. Keeps the call's arguments alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "client/link/link.h"
#include "client/session/saved_tensors.h"
#include "client/session/session.h"
#include "client/session/tensor.h"
#include "engine/schema/op.h"

namespace tt::client {

class SavedCall {
 public:
  SavedCall(std::shared_ptr<SavedTensorHooks> hooks, Args args);

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
  // Passes the described tensors to the hooks, and releases them in the engine.
  std::vector<PackedNode> store(Session& session, absl::Span<const int64_t> description,
                                absl::Span<const Tensor> results) const;

 private:
  const std::shared_ptr<SavedTensorHooks> hooks_;
  std::vector<Tensor> inputs_;
  Tensor description_;
  int64_t stop_ = 0;
};

}  // namespace tt::client
