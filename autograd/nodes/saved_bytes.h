// SavedBytes: saved tensors whose bytes the client frees after the forward pass and gives again before backward, such
// as parameters that are gathered from the ranks of a group.
//
// While the client watches a tensor, nodes that save a view of it keep the view's geometry and a reference to a
// SharedBytes instead of the view. The client releases the bytes and restores them with another tensor of the same
// size. A node that needs them in between throws Error. Nothing else refers to the bytes through a SharedBytes: tensors
// over the old bytes that the session, a transfer or a collective still uses keep their storage, which is freed after
// the last use.
//
// Owned by the Tape; used on the session's thread.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "engine/schema/error.h"
#include "engine/schema/ref.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

// The bytes of one watched tensor. Shared by the nodes that have saved views of it.
class SharedBytes final : public RefCounted {
 public:
  explicit SharedBytes(Tensor base);
  // Version of the bytes, as a storage counts it: the number of writes in place to them. Bytes that are restored have
  // the version of those that were released, whatever was written to them before.
  uint32_t version() const;
  // Returns a tensor over the bytes. `user` names the node in the error. Throws Error if the bytes are released, and
  // the error of the tensor with which they should have been restored.
  Tensor view(const TensorMeta& meta, absl::string_view user) const;
  // No effect if the bytes are released already.
  void release();
  // Throws Error unless `base` has the size, dtype and device of the first tensor. Replaces bytes that are not
  // released.
  void restore(Tensor base);
  // The bytes could not be restored: later uses throw `error`.
  void fail(const Error& error);
  const Storage* storage() const { return base_ ? base_->storage.get() : nullptr; }

 private:
  friend class TapeImage;
  SharedBytes() = default;  // of an image

  Tensor base_;  // undefined while the bytes are released
  TensorMeta meta_;
  uint32_t version_ = 0;       // at release, or when `base_` was set
  uint32_t base_version_ = 0;  // of base_'s storage when it was set
  std::unique_ptr<const Error> error_;
};

class SavedBytes {
 public:
  // Watches the tensor, which must be contiguous and start at its storage's first byte. Throws Error otherwise, if the
  // number is in use, or if too many tensors are watched.
  void watch(int64_t number, const Tensor& base);
  // Returns the watched bytes of a storage, or null.
  Ref<SharedBytes> find(const Storage& storage) const {
    if (by_storage_.empty()) [[likely]]
      return {};
    auto found = by_storage_.find(&storage);
    return found == by_storage_.end() ? Ref<SharedBytes>() : found->second;
  }
  // The methods below throw Error if the number is unknown.
  void release(int64_t number);
  void restore(int64_t number, Tensor base);
  // No effect if the number is unknown.
  void fail(int64_t number, const Error& error);
  // Ends the watch. Nodes keep bytes that are not released until they are freed themselves.
  void drop(int64_t number);

  uint64_t host_bytes() const { return by_number_.size() * kWatchedBytes; }

 private:
  friend class TapeImage;
  static constexpr size_t kMaxWatched = size_t{1} << 16;
  static constexpr uint64_t kWatchedBytes = 512;
  SharedBytes& at(int64_t number) const;

  absl::flat_hash_map<int64_t, Ref<SharedBytes>> by_number_;
  absl::flat_hash_map<const Storage*, Ref<SharedBytes>> by_storage_;  // those that have bytes
};

}  // namespace tt::autograd
