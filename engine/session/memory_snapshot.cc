#include "engine/session/memory_snapshot.h"

#include <cstring>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/device/devices.h"
#include "engine/dispatch/new_results.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"

namespace tt {
namespace {

constexpr uint64_t kMagic = 0x31524f4d454d5454;  // "TTMEMOR1"
constexpr int64_t kMaxEvents = int64_t{1} << 22;
static_assert(sizeof(SnapshotBlock) == 56 && sizeof(SnapshotEvent) == 32);

// Moves an address by a distance that is secret and constant in this process, so that a client does not learn where the
// engine's memory is.
uint64_t moved(const void* p) {
  constexpr uint64_t kAddresses = uint64_t{1} << 47;
  constexpr uint64_t kPage = uint64_t{2} << 20;
  static const uint64_t distance = [] {
    std::random_device random;
    return ((uint64_t{random()} << 32 | random()) % kAddresses) & ~(kPage - 1);
  }();
  return (reinterpret_cast<uintptr_t>(p) + distance) % kAddresses;
}

class Blocks {
 public:
  explicit Blocks(const Account* account) : account_(account) {}

  void add(const BlockInfo& info) {
    SnapshotBlock block;
    block.segment = moved(info.segment);
    block.offset = info.offset;
    block.size = info.size;
    block.pool = info.pool;
    block.stream = streams_.try_emplace(info.stream, streams_.size()).first->second;
    block.state = info.in_use ? SnapshotBlock::kUsed : info.waiting ? SnapshotBlock::kWaiting : SnapshotBlock::kFree;
    if (info.in_use) describe(info, &block);
    const bool hidden = block.state != SnapshotBlock::kFree && !block.own;
    if (hidden) block.state = SnapshotBlock::kUsed;
    if (hidden && last_hidden_ && follows(block)) {
      blocks_.back().size += block.size;
    } else {
      blocks_.push_back(block);
    }
    last_hidden_ = hidden;
  }
  const std::vector<SnapshotBlock>& all() const { return blocks_; }

 private:
  bool follows(const SnapshotBlock& block) const {
    const SnapshotBlock& last = blocks_.back();
    return last.segment == block.segment && last.offset + last.size == block.offset;
  }
  void describe(const BlockInfo& info, SnapshotBlock* block) const {
    if (account_ == nullptr) return;
    if (info.tenant == account_->tenant()) {
      block->own = 1;
      block->requested = info.requested;
      // Lines are numbered per session.
      if (info.owner == account_->owner()) block->site = info.site_number;
    } else if (const MemoryHistory* history = account_->history()) {  // the pool does not record owners of small blocks
      if (const auto live = history->find(static_cast<const char*>(info.segment) + info.offset)) {
        block->own = 1;
        block->requested = live->bytes;
        block->site = live->site;
      }
    }
  }

  const Account* account_;
  std::vector<SnapshotBlock> blocks_;
  absl::flat_hash_map<uint64_t, uint64_t> streams_;
  bool last_hidden_ = false;
};

template <typename T>
void append(std::string* out, const std::vector<T>& items) {
  out->append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
}

}  // namespace

std::string memory_snapshot(Device device) {
  const Account* account = Context::current().account.get();
  Allocator& allocator = Devices::instance().allocator(device);
  Blocks blocks(account);
  uint64_t reserved = 0;
  for (const BlockInfo& info : allocator.snapshot()) {
    blocks.add(info);
    reserved += info.size;
  }
  std::vector<SnapshotEvent> events;
  uint64_t dropped = 0;
  if (const MemoryHistory* history = account == nullptr ? nullptr : account->history()) {
    for (const MemoryHistory::Event& event : history->events()) {
      const uint64_t address = event.address == nullptr ? 0 : moved(event.address);
      events.push_back({event.time, address, event.bytes, event.site, event.kind, event.device});
    }
    dropped = history->dropped();
  }
  const std::vector<uint64_t> header = {kMagic,  blocks.all().size(),  events.size(),
                                        dropped, MemoryHistory::now(), reserved};
  std::string out;
  append(&out, header);
  append(&out, blocks.all());
  append(&out, events);
  return out;
}

namespace {

void history(Call& call) {
  const int64_t max_events = call.args[0].integer;
  check(ErrorKind::kValue, max_events >= 0 && max_events <= kMaxEvents, "[memory_history] expected 0 to ", kMaxEvents,
        " events, got ", max_events);
  Account* account = Context::current().account.get();
  if (account == nullptr) return;
  MemoryHistory& history = account->make_history();
  if (max_events == 0) history.stop();
  if (call.args[1].to_bool()) history.clear();
  if (max_events > 0) history.start(static_cast<size_t>(max_events));
}

void snapshot(Call& call) {
  const std::string bytes = memory_snapshot(decode_device(call.args[0].integer));
  call.outputs.assign(1, empty({static_cast<int64_t>(bytes.size())}, DType::kUInt8, Device{}));
  std::memcpy(call.outputs[0].data(), bytes.data(), bytes.size());
}

}  // namespace

void register_memory_operators(Dispatcher& dispatcher) {
  for (Key key : {Key::kCPU, Key::kCUDA}) {
    dispatcher.set(op_id::kMemoryHistory, key, &history);
    dispatcher.set(op_id::kMemorySnapshot, key, &with_new_results<&snapshot>);
  }
}

}  // namespace tt
