#include "engine/fault_log.h"

#include <algorithm>
#include <atomic>

#include "engine/context.h"
#include "engine/devices.h"
#include "engine/dispatcher.h"
#include "engine/slot_table.h"

namespace tt {
namespace {

bool was_raised(const FaultCell& cell) {
  return std::atomic_ref<const uint32_t>(cell.raised).load(std::memory_order_acquire) != 0;
}

template <typename F>
void for_each_tensor(const Arg& arg, F f) {
  if (arg.kind == Arg::Kind::kTensor) return f(*arg.tensor);
  if (arg.kind != Arg::Kind::kTensors) return;
  for (const TensorMeta* t : arg.list()) {
    if (t) f(*t);
  }
}

// Null for a number in a tensor's place.
Storage* storage_of(const TensorMeta& meta) {
  return meta.is_number ? nullptr : static_cast<const TensorImpl&>(meta).storage.get();
}

}  // namespace

FaultLog::~FaultLog() {
  for (Ticket& ticket : tickets_) {
    try {
      if (ticket.passed) ticket.passed->synchronize();  // the device may still write to the cells
    } catch (const Error&) {  // a lost device writes no more
    }
  }
  for (Cells& cells : cells_) {
    Devices::instance().backend(cells.device).staging().deallocate(cells.memory, Taint::kMost * sizeof(FaultCell));
  }
}

FaultCell* FaultLog::take_cell(Device device) {
  for (Cells& cells : cells_) {
    if (cells.device != device) continue;
    FaultCell* cell = cells.idle.back();
    cells.idle.pop_back();
    return cell;
  }
  Backend& backend = Devices::instance().backend(device);
  void* memory = backend.staging().allocate(Taint::kMost * sizeof(FaultCell), nullptr);
  Cells& cells = cells_.emplace_back(Cells{device, static_cast<FaultCell*>(memory), {}});
  for (uint64_t i = 0; i < Taint::kMost; ++i) cells.idle.push_back(cells.memory + i);
  return take_cell(device);
}

FaultCell* FaultLog::open(Stream& stream, FaultText text) {
  if (tickets_.size() == Taint::kMost) {
    Ticket& oldest = tickets_.front();
    if (!oldest.passed) oldest.passed = stream.record();
    oldest.passed->synchronize();
    if (was_raised(*oldest.cell)) throw oldest.text(*oldest.cell);
    opened_ = std::min(opened_, tickets_.size() - 1);
    retire_oldest();
  }
  FaultCell* cell = take_cell(stream.device());
  *cell = FaultCell{};
  tickets_.push_back({cell, text, stream.device(), nullptr, {}, 0});
  ++opened_;
  return cell;
}

void FaultLog::attach(const Call& call) {
  if (tickets_.empty()) return;
  uint64_t bits = 0;
  for (const Arg& arg : call.args) {
    for_each_tensor(arg, [&](const TensorMeta& t) {
      if (const Storage* storage = storage_of(t)) bits |= storage->taint.since(oldest_);
    });
  }
  if (opened_ > 0) {
    Context& context = Context::current();
    std::shared_ptr<Event> passed = context.stream(tickets_.back().device).record();
    for (; opened_ > 0; --opened_) {
      const size_t i = tickets_.size() - opened_;
      tickets_[i].passed = passed;
      tickets_[i].op = std::string(call.op->name);
      tickets_[i].site = context.site;
      bits |= uint64_t{1} << i;
    }
  }
  if (bits == 0) return;
  for (const Tensor& out : call.outputs) {
    if (out) out->storage->taint.set(oldest_, out->storage->taint.since(oldest_) | bits);
  }
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.op->params[i].written) continue;
    for_each_tensor(call.args[i], [&](const TensorMeta& t) {
      if (Storage* storage = storage_of(t)) storage->taint.set(oldest_, storage->taint.since(oldest_) | bits);
    });
  }
}

std::shared_ptr<const Poison> FaultLog::verdict(const Taint& taint) const {
  const uint64_t bits = taint.since(oldest_);
  for (size_t i = 0; i < tickets_.size(); ++i) {
    if ((bits >> i & 1) && was_raised(*tickets_[i].cell)) return poison_of(tickets_[i]);
  }
  return nullptr;
}

std::shared_ptr<const Poison> FaultLog::poison_of(const Ticket& ticket) const {
  Error error = ticket.text(*ticket.cell);
  error.set_op(ticket.op);
  return std::make_shared<const Poison>(Poison{error.kind(), error.message(), ticket.op, ticket.site, false});
}

void FaultLog::settle(SlotTable& slots) {
  while (!tickets_.empty() && tickets_.front().passed && tickets_.front().passed->done()) {
    const Ticket& oldest = tickets_.front();
    if (was_raised(*oldest.cell)) {
      const std::shared_ptr<const Poison> poison = poison_of(oldest);
      slots.poison_where([&](const Tensor& t) { return t->storage && (t->storage->taint.since(oldest_) & 1); }, poison);
    }
    retire_oldest();
  }
}

void FaultLog::make_room(SlotTable& slots) {
  if (tickets_.size() <= Taint::kMost / 2) return;
  tickets_[tickets_.size() / 2].passed->synchronize();
  settle(slots);
}

void FaultLog::retire_oldest() {
  for (Cells& cells : cells_) {
    if (cells.device == tickets_.front().device) cells.idle.push_back(tickets_.front().cell);
  }
  tickets_.pop_front();
  ++oldest_;
}

}  // namespace tt
