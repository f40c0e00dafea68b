#include "engine/slot_table.h"

namespace tt {

const SlotValue* SlotTable::find(Slot slot) const {
  auto at = values_.find(slot);
  return at == values_.end() ? nullptr : &at->second;
}

void SlotTable::put(Slot slot, SlotValue value) {
  check_as(ErrorKind::kValue, slot != 0, "a result was named 0");
  bool fresh = values_.try_emplace(slot, std::move(value)).second;
  check_as(ErrorKind::kValue, fresh, "the name ", slot, " is in use");
}

void SlotTable::poison(Slot slot, std::shared_ptr<const Poison> poison) {
  auto at = values_.find(slot);
  if (at != values_.end()) at->second = {Tensor(), std::move(poison)};
}

void SlotTable::poison_where(absl::FunctionRef<bool(const Tensor&)> applies,
                             const std::shared_ptr<const Poison>& poison) {
  for (auto& [slot, value] : values_) {
    if (value.tensor && applies(value.tensor)) value = {Tensor(), poison};
  }
}

bool SlotTable::release(Slot slot) { return values_.erase(slot) > 0; }

}  // namespace tt
