// Operators that show a session the blocks of a device's pool and its own recorded allocations.
//
// A snapshot contains what a session may know: blocks of other tenants that are neighbours are one block without a
// size, an owner or a line of their own, and addresses are moved by a secret distance.
#pragma once

#include <cstdint>
#include <string>

#include "engine/dispatch/dispatcher.h"

namespace tt {

// The parts of a snapshot, little endian: a header (six uint64: magic, numbers of blocks, of events, of events that
// were not kept, time in microseconds since 1970, bytes that the pool has reserved), the blocks and the events.
struct SnapshotBlock {
  enum State : uint16_t { kFree = 0, kUsed = 1, kWaiting = 2 };
  uint64_t segment = 0;  // its address
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t requested = 0;  // of a block in use, if known
  uint64_t pool = 0;       // the private pool of its segment; 0: shared
  uint64_t stream = 0;     // number of the segment's stream, from 0
  uint32_t site = 0;       // of a block in use: the client's number for the line that allocated it; 0: unknown
  uint16_t state = kFree;
  uint16_t own = 0;  // whether it is in use by a session of the same tenant
};

struct SnapshotEvent {
  uint64_t time = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t site = 0;
  uint16_t kind = 0;    // MemoryHistory::Kind
  uint16_t device = 0;  // 0: the CPU; 1 + the index of a GPU
};

// Returns the snapshot for the current session.
std::string memory_snapshot(Device device);

// Registers memory_history and memory_snapshot.
void register_memory_operators(Dispatcher& dispatcher);

}  // namespace tt
