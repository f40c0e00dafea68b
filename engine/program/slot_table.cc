#include "engine/program/slot_table.h"

namespace tt {
namespace {

uint32_t host_bytes_of(const SlotValue& value) {
  if (!value.tensor) return 0;
  // Counts the sizes and strides of the tensor and of its base if they are not stored inline.
  const size_t dims = value.tensor.sizes().size();
  return SlotTable::kTensorBytes + (dims > 5 ? static_cast<uint32_t>(dims * 4 * sizeof(int64_t)) : 0);
}

bool is_withheld(const SlotValue& value) { return value.tensor && value.poison; }

}  // namespace

const SlotValue* SlotTable::find(Slot slot) const {
  auto at = values_.find(slot);
  return at == values_.end() ? nullptr : &at->second;
}

void SlotTable::put(Slot slot, SlotValue value) {
  check(ErrorKind::kValue, slot != 0, "the result name 0 is invalid");
  check(ErrorKind::kValue, values_.size() < max_names_, "a session has at most ", max_names_, " handles");
  const uint32_t bytes = value.host_bytes = host_bytes_of(value);
  const bool withheld = is_withheld(value);
  bool fresh = values_.try_emplace(slot, std::move(value)).second;
  check(ErrorKind::kValue, fresh, "the name ", slot, " is in use");
  tensor_bytes_ += bytes;
  withheld_ += withheld;
}

void SlotTable::replace(SlotValue& value, const PoisonRef& poison) {
  tensor_bytes_ -= value.host_bytes;
  withheld_ -= is_withheld(value);
  value = {Tensor(), poison};
}

void SlotTable::poison(Slot slot, PoisonRef poison) {
  auto at = values_.find(slot);
  if (at != values_.end()) replace(at->second, poison);
}

void SlotTable::poison_where(absl::FunctionRef<bool(const Tensor&)> applies, const PoisonRef& poison) {
  for (auto& [slot, value] : values_) {
    if (value.tensor && applies(value.tensor)) replace(value, poison);
  }
}

void SlotTable::withhold_where(absl::FunctionRef<bool(const Tensor&)> applies, const PoisonRef& poison) {
  for (auto& [slot, value] : values_) {
    if (!value.tensor || value.poison || !applies(value.tensor)) continue;
    value.poison = poison;
    ++withheld_;
  }
}

PoisonRef SlotTable::withheld_error() const {
  if (withheld_ == 0) return nullptr;
  Slot oldest = 0;
  PoisonRef error;
  for (const auto& [slot, value] : values_) {
    if (!is_withheld(value) || (error && slot > oldest)) continue;
    oldest = slot;
    error = value.poison;
  }
  return error;
}

void SlotTable::acknowledge(PoisonRef poison) {
  if (withheld_ == 0) return;
  for (auto& [slot, value] : values_) {
    if (value.poison != poison || !is_withheld(value)) continue;
    value.poison = nullptr;
    --withheld_;
  }
}

void SlotTable::visit(absl::FunctionRef<void(Slot, const SlotValue&)> visit) const {
  for (const auto& [slot, value] : values_) visit(slot, value);
}

bool SlotTable::release(Slot slot) {
  auto at = values_.find(slot);
  if (at == values_.end()) return false;
  tensor_bytes_ -= at->second.host_bytes;
  withheld_ -= is_withheld(at->second);
  values_.erase(at);
  return true;
}

}  // namespace tt
