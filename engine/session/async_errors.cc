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
const PendingCheck* find_failed(absl::Span<const PendingCheck> checks) {
  for (const PendingCheck& check : checks) {
    if (was_raised(*check.cell)) return &check;
  }
  return nullptr;
}

std::shared_ptr<const Poison> poison_of(const PendingCheck& check) {
  Error error = check.format(*check.cell);
  error.set_op(check.op);
  return make_poison(error.kind(), error.message(), check.op, check.site);
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

DeviceErrorCell* AsyncErrorTracker::acquire_cell(Device device) {
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
  return acquire_cell(device);
}

void AsyncErrorTracker::make_room_for_one(Stream& stream) {
  if (tickets_.size() < PendingErrors::kMaxTickets) return;
  Ticket& oldest = tickets_.front();
  if (!oldest.passed) oldest.passed = stream.record();
  oldest.passed->synchronize();
  if (const PendingCheck* check = find_failed(oldest.checks)) throw check->format(*check->cell);
  opened_ = std::min(opened_, tickets_.size() - 1);
  retire_oldest();
}

DeviceErrorCell* AsyncErrorTracker::open(Stream& stream, ErrorFormatter format) {
  if (captured_) return open_captured(format);
  make_room_for_one(stream);
  DeviceErrorCell* cell = acquire_cell(stream.device());
  *cell = DeviceErrorCell{};
  tickets_.push_back({{PendingCheck{cell, format, {}, 0}}, stream.device(), nullptr, nullptr});
  ++opened_;
  return cell;
}

void AsyncErrorTracker::attach(const Call& call) {
  if (captured_) return attach_captured(call);
  if (tickets_.empty()) return;
  uint64_t bits = 0;
  for (const Arg& arg : call.args) {
    for_each_tensor(arg, [&](const TensorMeta& t) {
      if (const Storage* storage = storage_of(t)) bits |= storage->pending_errors.open_since(oldest_);
    });
  }
  if (opened_ > 0) {
    Context& context = Context::current();
    std::shared_ptr<Event> passed = context.stream(tickets_.back().device).record();
    for (; opened_ > 0; --opened_) {
      const size_t i = tickets_.size() - opened_;
      tickets_[i].passed = passed;
      tickets_[i].checks[0].op = std::string(call.op->name);
      tickets_[i].checks[0].site = context.site;
      bits |= uint64_t{1} << i;
    }
  }
  if (bits == 0) return;
  for (const Tensor& out : call.outputs) {
    if (out) out->storage->pending_errors.set(oldest_, out->storage->pending_errors.open_since(oldest_) | bits);
  }
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.op->params[i].written) continue;
    for_each_tensor(call.args[i], [&](const TensorMeta& t) {
      if (Storage* storage = storage_of(t))
        storage->pending_errors.set(oldest_, storage->pending_errors.open_since(oldest_) | bits);
    });
  }
}

std::shared_ptr<const Poison> AsyncErrorTracker::find_error(const PendingErrors& pending_errors) const {
  const uint64_t bits = pending_errors.open_since(oldest_);
  for (size_t i = 0; i < tickets_.size(); ++i) {
    if ((bits >> i & 1) == 0) continue;
    if (const PendingCheck* check = find_failed(tickets_[i].checks)) return poison_of(*check);
  }
  return nullptr;
}

void AsyncErrorTracker::retire_completed(SlotTable& slots) {
  if (captured_) return;  // events cannot be queried during a capture
  while (!tickets_.empty() && tickets_.front().passed) {
    std::shared_ptr<const Poison> poison;
    if (!has_passed(tickets_.front(), &poison)) return;
    if (poison) {
      slots.poison_where(
          [&](const Tensor& t) { return t->storage && (t->storage->pending_errors.open_since(oldest_) & 1); }, poison);
    }
    retire_oldest();
  }
}

bool AsyncErrorTracker::has_passed(const Ticket& ticket, std::shared_ptr<const Poison>* poison) const {
  try {
    if (!ticket.passed->done()) return false;
    if (const PendingCheck* check = find_failed(ticket.checks)) *poison = poison_of(*check);
  } catch (const Error& error) {  // the device was lost
    const PendingCheck& check = ticket.checks[0];
    *poison = make_poison(error.kind(), error.message(), check.op, check.site);
  }
  return true;
}

void AsyncErrorTracker::make_room(SlotTable& slots) {
  if (captured_ || tickets_.size() <= PendingErrors::kMaxTickets / 2) return;
  const std::shared_ptr<Event>& passed = tickets_[tickets_.size() / 2].passed;
  try {
    if (passed) passed->synchronize();
  } catch (const Error&) {  // retire_completed() reports the error
  }
  retire_completed(slots);
}

bool AsyncErrorTracker::is_shared(const DeviceErrorCell* cells) const {
  return std::any_of(tickets_.begin() + 1, tickets_.end(),
                     [=](const Ticket& ticket) { return ticket.of_graph.get() == cells; });
}

void AsyncErrorTracker::retire_oldest() {
  Ticket& oldest = tickets_.front();
  if (oldest.of_graph) {
    // Does not clear the cells if a later replay uses them: its kernels may write to them at any time.
    if (!is_shared(oldest.of_graph.get())) {
      for (const PendingCheck& check : oldest.checks) *check.cell = DeviceErrorCell{};
    }
  } else {
    for (Cells& cells : cells_) {
      if (cells.device == oldest.device) cells.idle.push_back(oldest.checks[0].cell);
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
  CapturedChecks captured = std::move(*captured_);
  captured_ = nullptr;
  return captured;
}

DeviceErrorCell* AsyncErrorTracker::open_captured(ErrorFormatter format) {
  CapturedChecks& captured = *captured_;
  // Further calls share the last cell; an error in them is reported with the wrong call's text.
  if (captured.checks.size() == PendingErrors::kMaxTickets) return captured.checks.back().cell;
  if (!captured.cells) {
    Allocator& staging = Devices::instance().backend(captured.device).staging();
    auto* cells = static_cast<DeviceErrorCell*>(staging.allocate(PendingErrors::kMaxTickets * sizeof(DeviceErrorCell)));
    std::fill_n(cells, PendingErrors::kMaxTickets, DeviceErrorCell{});
    captured.cells = {cells, [&staging](DeviceErrorCell* p) {
                        staging.deallocate(p, PendingErrors::kMaxTickets * sizeof(DeviceErrorCell));
                      }};
  }
  captured.checks.push_back({captured.cells.get() + captured.checks.size(), format, {}, 0});
  return captured.checks.back().cell;
}

void AsyncErrorTracker::attach_captured(const Call& call) {
  CapturedChecks& captured = *captured_;
  if (captured.checks.empty()) return;
  for (auto check = captured.checks.rbegin(); check != captured.checks.rend() && check->op.empty(); ++check) {
    check->op = std::string(call.op->name);
    check->site = Context::current().site;
  }
  for (const Tensor& out : call.outputs) {
    if (out && out.device() == captured.device) captured.dependents.push_back(out->storage);
  }
}

void AsyncErrorTracker::on_replay(const CapturedChecks& captured, Stream& stream) {
  if (captured.checks.empty()) return;
  make_room_for_one(stream);
  tickets_.push_back(
      {{captured.checks.begin(), captured.checks.end()}, captured.device, stream.record(), captured.cells});
  const uint64_t bit = uint64_t{1} << (tickets_.size() - 1);
  for (const Ref<Storage>& storage : captured.dependents) {
    storage->pending_errors.set(oldest_, storage->pending_errors.open_since(oldest_) | bit);
  }
}

}  // namespace tt
