// Allocator: where a device's bytes come from.
//
// One a kind of memory, owned by its device's Backend, alive as long as the process. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/memory/account.h"
#include "engine/memory/allocator_stats.h"

namespace tt {

class Stream;

// Whose bytes a block holds: an Account's tenant(). kNobody: the engine's own.
using Tenant = uint64_t;
inline constexpr Tenant kNobody = 0;

// What a block is asked for with.
struct AllocRequest {
  Stream* stream = nullptr;  // in whose order it is used; null: the host's, of memory that the host uses
  Tenant tenant = kNobody;
  const std::shared_ptr<Account>* account = nullptr;  // who pays; may be null, or point to null: nobody
  uint32_t site = 0;                                  // the client's number for the line that allocates; 0: unknown
};

// One block of a snapshot.
struct BlockInfo {
  const void* segment;
  uint64_t offset;
  uint64_t size;
  bool in_use;             // handed out
  bool waiting = false;    // freed, but another stream may still use it
  uint64_t requested = 0;  // what was asked for, where it is in use
  uint64_t pool = 0;       // the private pool that the segment belongs to
  uint64_t stream = 0;     // in whose order it is used
  // Of a block in use, where they are known: whose it is ("session 3") and which line made it. The CPU's small blocks
  // are handed out faster than a name is written down; they have none.
  std::string owner = {};
  std::string site = {};
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // 64-byte aligned; null for 0 bytes. Contains nothing but zeros and bytes that the request's tenant itself left
  // there: what others left is zeroed first, in the stream's order. kNobody gets blocks as they are, and must not show
  // their contents. The block is safe to use in the stream's order, and in others after record_stream(). Throws
  // Error(kOutOfMemory) that says what was asked, what is free, what is held and by whom, and what to try; what was
  // allocated is as before then.
  virtual void* allocate(size_t bytes, const AllocRequest& request = {}) = 0;
  // `p` came from allocate(bytes), and `tenant` has written to it (kNobody: that is not known). It may be handed out
  // again at once, in stream order. Does not throw.
  virtual void deallocate(void* p, size_t bytes, Tenant tenant = kNobody) = 0;
  // `p` is a block's beginning, in use in `stream` too: once freed it is not handed out before what was under way there
  // by then is done. For memory that one stream allocates and another reads or writes. `stream` may be gone by then.
  virtual void record_stream(void* p, Stream& stream) = 0;
  virtual AllocatorStats stats() const = 0;
  virtual std::vector<BlockInfo> snapshot() const = 0;
  // Gives unused segments back to the system: those of `stream`'s order, or (null) all.
  virtual void empty_cache(const Stream* stream = nullptr) = 0;
  // No session of `tenant` is left: where much is unused, gives back what holds its, or several tenants', bytes.
  virtual void forget(Tenant tenant) = 0;
  // Reserved bytes never exceed it; 0: no limit.
  virtual void set_limit(uint64_t bytes) = 0;

  // Private pools, for graphs: a graph has the addresses of its temporaries in it, so nobody else may get them as long
  // as it may be launched. Between begin and end, what is allocated in `stream`'s order comes out of `pool`, and goes
  // back into it whenever it is freed; one pool a stream at a time. Nothing is given back to the system and no event is
  // asked for anything meanwhile, in any stream.
  virtual uint64_t make_pool() = 0;                            // a name, never 0; costs nothing
  virtual void begin_pool(uint64_t pool, Stream& stream) = 0;  // the pool has one user more
  virtual void end_pool(uint64_t pool, Stream& stream) = 0;
  // The pool has one user less. Once the last lets go, what is unused of it is given back to the system with the next
  // empty_cache() or when memory is short, and what is in use after it is freed. Its graphs' launches must be done.
  virtual void release_pool(uint64_t pool) = 0;
};

}  // namespace tt
