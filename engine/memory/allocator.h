// Allocator: allocates memory of one kind.
//
// There is one per kind of memory. It is owned by its device's Backend and lives as long as the process. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/memory/account.h"
#include "engine/memory/allocator_stats.h"

namespace tt {

class Stream;

// The owner of a block's contents: an Account's tenant(). kNoTenant: the engine itself.
using Tenant = uint64_t;
inline constexpr Tenant kNoTenant = 0;

// Parameters of an allocation.
struct AllocRequest {
  Stream* stream = nullptr;  // the stream that orders the block's use; null: host memory used by the host
  Tenant tenant = kNoTenant;
  const std::shared_ptr<Account>* account = nullptr;  // account to charge; none if null or pointing to null
  uint32_t site = 0;                                  // the client's number for the source line; 0: unknown
};

// One block in a snapshot of an allocator.
struct BlockInfo {
  const void* segment;
  uint64_t offset;
  uint64_t size;
  bool in_use;             // allocated to a caller
  bool waiting = false;    // freed, but another stream may still use it
  uint64_t requested = 0;  // the requested size if in use
  uint64_t pool = 0;       // the private pool that the segment belongs to
  uint64_t stream = 0;     // the stream that orders the block's use
  // Owner ("session 3") and allocating source line of a block in use, if known. Not recorded for the CPU's small
  // blocks, because recording would take longer than the allocation.
  std::string owner = {};
  std::string site = {};
  Tenant tenant = kNoTenant;  // of the owner
  uint32_t site_number = 0;   // the owner's number for `site`
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns 64-byte aligned memory; null for 0 bytes. It contains only zeros and bytes written by the request's tenant:
  // other contents are zeroed first, in the stream's order. kNoTenant gets blocks without zeroing, and must not expose
  // their contents. The block is safe to use in the stream's order, and in other streams after record_stream(). Throws
  // Error(kOutOfMemory) with the requested size, the free and held bytes, their holders, and advice; existing
  // allocations remain unchanged.
  virtual void* allocate(size_t bytes, const AllocRequest& request = {}) = 0;
  // `p` must come from allocate(bytes). `tenant` is the tenant that has written to it (kNoTenant: unknown). The block
  // may be reused at once, in stream order. Does not throw.
  virtual void deallocate(void* p, size_t bytes, Tenant tenant = kNoTenant) = 0;
  // Records that the block at `p` is also used in `stream`. After the block is freed, it is not reused before the work
  // that is then queued in `stream` is done. For memory that one stream allocates and another reads or writes. `stream`
  // may be destroyed before the block is freed.
  virtual void record_stream(void* p, Stream& stream) = 0;
  virtual AllocatorStats stats() const = 0;
  virtual std::vector<BlockInfo> snapshot() const = 0;
  // Releases unused segments to the system: those of `stream`, or all segments if `stream` is null.
  virtual void empty_cache(const Stream* stream = nullptr) = 0;
  // Call when the last session of `tenant` has ended. If much memory is unused, releases segments that contain bytes of
  // this tenant or of several tenants.
  virtual void forget(Tenant tenant) = 0;
  // Limits the reserved bytes; 0: no limit.
  virtual void set_limit(uint64_t bytes) = 0;
  // Returns free memory that nobody has used for `idle` to the system: unused segments, and the pages of large free
  // blocks in other segments. Call every few seconds: `now` is the time of the call, and ages are known to the interval
  // between calls. The system calls are made without the allocator's lock.
  virtual void release_idle(std::chrono::steady_clock::time_point now, std::chrono::steady_clock::duration idle) = 0;
  // Records `owner` as the holder of the block at `p` in snapshots and errors, if the block's holder is recorded.
  virtual void set_owner(void* p, const std::shared_ptr<Account>& owner) = 0;

  // Private pools, for graphs. A graph contains the addresses of its temporaries, so their memory must stay reserved
  // while the graph may be launched. Between begin and end, allocations in `stream`'s order use `pool`, and their
  // memory returns to the pool when they are freed. A stream uses one pool at a time. While a stream uses a pool, no
  // memory is released to the system and no event is queried.
  virtual uint64_t make_pool() = 0;                            // an id, never 0; allocates nothing
  virtual void begin_pool(uint64_t pool, Stream& stream) = 0;  // adds a user to the pool
  virtual void end_pool(uint64_t pool, Stream& stream) = 0;
  // Removes a user from the pool. A pool without users releases its memory to the system: unused memory at the next
  // empty_cache() or when memory is short, other memory after it is freed. Requires that launches of the pool's graphs
  // are complete.
  virtual void release_pool(uint64_t pool) = 0;
};

}  // namespace tt
