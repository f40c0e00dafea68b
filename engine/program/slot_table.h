// SlotTable: the values of a session's names: a tensor, or the error in its place.
//
// Owned by a session; used under its lock.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "engine/program/poison.h"
#include "engine/program/program.h"
#include "engine/tensor/tensor.h"

namespace tt {

struct SlotValue {
  Tensor tensor;            // null where it was never computed or is lost
  PoisonRef poison;         // null where the tensor is good; beside a tensor: it is withheld
  uint32_t host_bytes = 0;  // as the table has counted it
};

class SlotTable {
 public:
  // Host memory that a tensor takes beside its bytes, about: the tensor, its base, its storage, its place on the tape,
  // the pool's block.
  static constexpr uint32_t kTensorBytes = 768;

  // Null where the name is not in use. Valid until the table changes.
  const SlotValue* find(Slot slot) const;
  // How many names may be in use.
  void set_limit(size_t names) { most_ = names; }
  size_t limit() const { return most_; }
  // Host memory of the table and of its tensors beside their bytes, about.
  uint64_t host_bytes() const { return tensor_bytes_ + values_.capacity() * kEntryBytes; }
  // Throws Error (ValueError) on 0, a name that is in use, or a name too many.
  void put(Slot slot, SlotValue value);
  // Puts the error in the place of a name's value; nothing where the name is not in use.
  void poison(Slot slot, PoisonRef poison);
  // The same, for all names whose tensors `applies` is true of.
  void poison_where(absl::FunctionRef<bool(const Tensor&)> applies, const PoisonRef& poison);
  // Withholds all tensors that `applies` is true of: their names read as the error until it is acknowledged. For a
  // write that was not done, so that no one mistakes the old values for the new ones.
  void withhold_where(absl::FunctionRef<bool(const Tensor&)> applies, const PoisonRef& poison);
  // The client has received the error: names whose tensors were withheld for it read as their tensors again.
  void acknowledge(PoisonRef poison);
  // False where the name was not in use.
  bool release(Slot slot);
  void clear() {
    values_.clear();
    tensor_bytes_ = 0;
    withheld_ = 0;
  }
  size_t size() const { return values_.size(); }

 private:
  static constexpr uint64_t kEntryBytes = sizeof(Slot) + sizeof(SlotValue) + 1;
  void replace(SlotValue& value, const PoisonRef& poison);

  size_t most_ = SIZE_MAX;
  uint64_t tensor_bytes_ = 0;
  size_t withheld_ = 0;  // values with both a tensor and an error
  absl::flat_hash_map<Slot, SlotValue> values_;
};

}  // namespace tt
