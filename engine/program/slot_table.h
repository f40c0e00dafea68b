// SlotTable: maps a session's names to values: tensors, or the errors stored in their place.
//
// Owned by a session; used under its lock.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "engine/program/poison.h"
#include "engine/schema/program.h"
#include "engine/tensor/tensor.h"

namespace tt {

struct SlotValue {
  Tensor tensor;            // null if never computed or lost
  PoisonRef poison;         // null if the tensor is valid; with a tensor: the tensor is withheld
  uint32_t host_bytes = 0;  // host memory that the table counts for this value
};

class SlotTable {
 public:
  // Estimated host memory per tensor in addition to its bytes: the tensor, its base, its storage, its tape entry, the
  // pool's block.
  static constexpr uint32_t kTensorBytes = 768;

  // Null if the name is not in use. Valid until the table changes.
  const SlotValue* find(Slot slot) const;
  // Sets the maximum number of names in use.
  void set_limit(size_t names) { max_names_ = names; }
  size_t limit() const { return max_names_; }
  // Estimated host memory of the table and of its tensors, not counting the tensors' bytes.
  uint64_t host_bytes() const { return tensor_bytes_ + values_.capacity() * kEntryBytes; }
  // Throws Error (ValueError) if the name is 0 or in use, or the limit is reached.
  void put(Slot slot, SlotValue value);
  // Replaces a name's value with the error. No effect if the name is not in use.
  void poison(Slot slot, PoisonRef poison);
  // Replaces the values of all names whose tensors satisfy `applies` with the error.
  void poison_where(absl::FunctionRef<bool(const Tensor&)> applies, const PoisonRef& poison);
  // Withholds all tensors that satisfy `applies`: reading their names returns the error until it is acknowledged. Used
  // after a write that was not executed, so that the old values are not mistaken for the new ones.
  void withhold_where(absl::FunctionRef<bool(const Tensor&)> applies, const PoisonRef& poison);
  // The error with which the oldest name is withheld, or null.
  PoisonRef withheld_error() const;
  // Call when the client has received the error: names that were withheld with it return their tensors again.
  void acknowledge(PoisonRef poison);
  // Removes a name. Returns false if the name was not in use.
  bool release(Slot slot);
  // Calls visit(slot, value) for every name, in no order. `visit` must not change the table.
  void visit(absl::FunctionRef<void(Slot, const SlotValue&)> visit) const;
  void clear() {
    values_.clear();
    tensor_bytes_ = 0;
    withheld_ = 0;
  }
  size_t size() const { return values_.size(); }

 private:
  static constexpr uint64_t kEntryBytes = sizeof(Slot) + sizeof(SlotValue) + 1;
  void replace(SlotValue& value, const PoisonRef& poison);

  size_t max_names_ = SIZE_MAX;
  uint64_t tensor_bytes_ = 0;
  size_t withheld_ = 0;  // values with both a tensor and an error
  absl::flat_hash_map<Slot, SlotValue> values_;
};

}  // namespace tt
