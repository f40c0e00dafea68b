// SlotTable: what the names of a session stand for: a tensor, or the error in its place.
//
// Owned by a session; used under its lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "engine/program.h"
#include "engine/rules/error.h"
#include "engine/tensor.h"

namespace tt {

// A failed instruction, standing where its results should be. Shared by all that depends on it.
struct Poison {
  ErrorKind kind;
  std::string message;  // "[matmul] inner sizes differ, got [2, 3] and [4, 5]"
  std::string op;
  uint32_t site = 0;
  bool retriable = false;  // the same call may succeed later (out of memory)
};

// Thrown by whoever finds out that a value which it was given is poisoned: its own results get the same root.
class Poisoned final : public Error {
 public:
  explicit Poisoned(std::shared_ptr<const Poison> root) : Error(root->kind, root->message), root_(std::move(root)) {}
  const std::shared_ptr<const Poison>& root() const { return root_; }

 private:
  std::shared_ptr<const Poison> root_;
};

struct SlotValue {
  Tensor tensor;
  std::shared_ptr<const Poison> poison;  // null where the tensor is good
};

class SlotTable {
 public:
  // Null where the name is not in use. Valid until the table changes.
  const SlotValue* find(Slot slot) const;
  // Throws Error (ValueError) on 0 or a name that is in use.
  void put(Slot slot, SlotValue value);
  // Puts the error in the place of a name's value; nothing where the name is not in use.
  void poison(Slot slot, std::shared_ptr<const Poison> poison);
  // The same, for all names whose tensors `applies` is true of.
  void poison_where(absl::FunctionRef<bool(const Tensor&)> applies, const std::shared_ptr<const Poison>& poison);
  // False where the name was not in use.
  bool release(Slot slot);
  void clear() { values_.clear(); }
  size_t size() const { return values_.size(); }

 private:
  absl::flat_hash_map<Slot, SlotValue> values_;
};

}  // namespace tt
