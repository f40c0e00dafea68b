#include "engine/session/async_errors.h"

#include <algorithm>
#include <atomic>

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/program/slot_table.h"
#include "engine/session/context.h"

namespace tt {
namespace {

bool was_raised(const DeviceErrorCell& cell) {
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

// Returns the first check that detected an error, or null.
const PendingCheck* guilty(absl::Span<const PendingCheck> suspects) {
  for (const PendingCheck& suspect : suspects) {
    if (was_raised(*suspect.cell)) return &suspect;
  }
  return nullptr;
}

std::shared_ptr<const Poison> poison_of(const PendingCheck& suspect) {
  Error error = suspect.text(*suspect.cell);
  error.set_op(suspect.op);
  return make_poison(error.kind(), error.message(), suspect.op, suspect.site);
}

// Null for a number passed for a tensor.
Storage* storage_of(const TensorMeta& meta) {
  return meta.is_number ? nullptr : static_cast<const TensorImpl&>(meta).storage.get();
}

}  // namespace

AsyncErrorTracker::~AsyncErrorTracker() {
  for (Ticket& ticket : tickets_) {
    try {
      if (ticket.passed) ticket.passed->synchronize();  // the device may still write to the cells
    } catch (const Error&) {                            // a lost device no longer writes
    }
  }
  for (Cells& cells : cells_) {
    Devices::instance()
        .backend(cells.device)
        .staging()
        .deallocate(cells.memory, PendingErrors::kMaxTickets * sizeof(DeviceErrorCell));
  }
}

DeviceErrorCell* AsyncErrorTracker::take_cell(Device device) {
  for (Cells& cells : cells_) {
    if (cells.device != device) continue;
    DeviceErrorCell* cell = cells.idle.back();
    cells.idle.pop_back();
    return cell;
  }
  Backend& backend = Devices::instance().backend(device);
  void* memory = backend.staging().allocate(PendingErrors::kMaxTickets * sizeof(DeviceErrorCell));
  Cells& cells = cells_.emplace_back(Cells{device, static_cast<DeviceErrorCell*>(memory), {}});
  for (uint64_t i = 0; i < PendingErrors::kMaxTickets; ++i) cells.idle.push_back(cells.memory + i);
  return take_cell(device);
}

void AsyncErrorTracker::make_room_for_one(Stream& stream) {
  if (tickets_.size() < PendingErrors::kMaxTickets) return;
  Ticket& oldest = tickets_.front();
  if (!oldest.passed) oldest.passed = stream.record();
  oldest.passed->synchronize();
  if (const PendingCheck* suspect = guilty(oldest.suspects)) throw suspect->text(*suspect->cell);
  opened_ = std::min(opened_, tickets_.size() - 1);
  retire_oldest();
}

DeviceErrorCell* AsyncErrorTracker::open(Stream& stream, ErrorFormatter text) {
  if (captured_) return open_captured(text);
  make_room_for_one(stream);
  DeviceErrorCell* cell = take_cell(stream.device());
  *cell = DeviceErrorCell{};
  tickets_.push_back({{PendingCheck{cell, text, {}, 0}}, stream.device(), nullptr, nullptr});
  ++opened_;
  return cell;
}

void AsyncErrorTracker::attach(const Call& call) {
  if (captured_) return attach_captured(call);
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
      tickets_[i].suspects[0].op = std::string(call.op->name);
      tickets_[i].suspects[0].site = context.site;
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

std::shared_ptr<const Poison> AsyncErrorTracker::verdict(const PendingErrors& taint) const {
  const uint64_t bits = taint.since(oldest_);
  for (size_t i = 0; i < tickets_.size(); ++i) {
    if ((bits >> i & 1) == 0) continue;
    if (const PendingCheck* suspect = guilty(tickets_[i].suspects)) return poison_of(*suspect);
  }
  return nullptr;
}

void AsyncErrorTracker::settle(SlotTable& slots) {
  if (captured_) return;  // events cannot be queried during a capture
  while (!tickets_.empty() && tickets_.front().passed) {
    std::shared_ptr<const Poison> poison;
    if (!has_passed(tickets_.front(), &poison)) return;
    if (poison) {
      slots.poison_where([&](const Tensor& t) { return t->storage && (t->storage->taint.since(oldest_) & 1); }, poison);
    }
    retire_oldest();
  }
}

bool AsyncErrorTracker::has_passed(const Ticket& ticket, std::shared_ptr<const Poison>* poison) const {
  try {
    if (!ticket.passed->done()) return false;
    if (const PendingCheck* suspect = guilty(ticket.suspects)) *poison = poison_of(*suspect);
  } catch (const Error& error) {  // the device was lost
    const PendingCheck& suspect = ticket.suspects[0];
    *poison = make_poison(error.kind(), error.message(), suspect.op, suspect.site);
  }
  return true;
}

void AsyncErrorTracker::make_room(SlotTable& slots) {
  if (captured_ || tickets_.size() <= PendingErrors::kMaxTickets / 2) return;
  const std::shared_ptr<Event>& passed = tickets_[tickets_.size() / 2].passed;
  try {
    if (passed) passed->synchronize();
  } catch (const Error&) {  // settle() handles it
  }
  settle(slots);
}

bool AsyncErrorTracker::is_shared(const DeviceErrorCell* cells) const {
  return std::any_of(tickets_.begin() + 1, tickets_.end(),
                     [=](const Ticket& ticket) { return ticket.of_graph.get() == cells; });
}

void AsyncErrorTracker::retire_oldest() {
  Ticket& oldest = tickets_.front();
  if (oldest.of_graph) {
    // The kernels of a later replay may write to the cells at any time.
    if (!is_shared(oldest.of_graph.get())) {
      for (const PendingCheck& suspect : oldest.suspects) *suspect.cell = DeviceErrorCell{};
    }
  } else {
    for (Cells& cells : cells_) {
      if (cells.device == oldest.device) cells.idle.push_back(oldest.suspects[0].cell);
    }
  }
  tickets_.pop_front();
  ++oldest_;
}

// ---- Graphs --------------------------------------------------------------------------------

void AsyncErrorTracker::begin_capture(Device device) {
  captured_ = std::make_unique<CapturedChecks>();
  captured_->device = device;
}

CapturedChecks AsyncErrorTracker::end_capture() {
  CapturedChecks faults = std::move(*captured_);
  captured_ = nullptr;
  return faults;
}

DeviceErrorCell* AsyncErrorTracker::open_captured(ErrorFormatter text) {
  CapturedChecks& faults = *captured_;
  // Further calls share the last cell; an error in them is reported with the wrong call's text.
  if (faults.suspects.size() == PendingErrors::kMaxTickets) return faults.suspects.back().cell;
  if (!faults.cells) {
    Allocator& staging = Devices::instance().backend(faults.device).staging();
    auto* cells = static_cast<DeviceErrorCell*>(staging.allocate(PendingErrors::kMaxTickets * sizeof(DeviceErrorCell)));
    std::fill_n(cells, PendingErrors::kMaxTickets, DeviceErrorCell{});
    faults.cells = {cells, [&staging](DeviceErrorCell* p) {
                      staging.deallocate(p, PendingErrors::kMaxTickets * sizeof(DeviceErrorCell));
                    }};
  }
  faults.suspects.push_back({faults.cells.get() + faults.suspects.size(), text, {}, 0});
  return faults.suspects.back().cell;
}

void AsyncErrorTracker::attach_captured(const Call& call) {
  CapturedChecks& faults = *captured_;
  if (faults.suspects.empty()) return;
  for (auto suspect = faults.suspects.rbegin(); suspect != faults.suspects.rend() && suspect->op.empty(); ++suspect) {
    suspect->op = std::string(call.op->name);
    suspect->site = Context::current().site;
  }
  for (const Tensor& out : call.outputs) {
    if (out && out.device() == faults.device) faults.doubtful.push_back(out->storage);
  }
}

void AsyncErrorTracker::replayed(const CapturedChecks& faults, Stream& stream) {
  if (faults.suspects.empty()) return;
  make_room_for_one(stream);
  tickets_.push_back({{faults.suspects.begin(), faults.suspects.end()}, faults.device, stream.record(), faults.cells});
  const uint64_t bit = uint64_t{1} << (tickets_.size() - 1);
  for (const Ref<Storage>& storage : faults.doubtful) {
    storage->taint.set(oldest_, storage->taint.since(oldest_) | bit);
  }
}

}  // namespace tt
