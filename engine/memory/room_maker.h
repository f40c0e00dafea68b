// RoomMaker: frees memory of a device for an allocation that would otherwise fail.
//
// At most one per process, which a higher layer registers. A pool calls make_room() when a device has no memory left
// for a request after the pool's own cache was emptied: without the pool's lock, but with whatever locks the allocating
// thread holds. An allocation that succeeds at once never calls it.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/memory/account.h"
#include "engine/schema/device.h"

namespace tt {

class RoomMaker {
 public:
  virtual ~RoomMaker() = default;
  // Frees memory of `device` for a request of `bytes` bytes by `account`, which is null if no session allocates.
  // Returns whether another attempt is worthwhile: some memory was freed. Any thread may call it, also several at a
  // time. Must not wait for a lock that an allocating thread may hold, and must return in bounded time. Must not throw.
  virtual bool make_room(Device device, size_t bytes, const Account* account) = 0;
};

// Registers `maker`; null: none. The previous one may still be called by threads that are in make_room().
void set_room_maker(std::shared_ptr<RoomMaker> maker);

// Calls the registered RoomMaker; if `account` is null, with the account of the thread's AllocScope. Returns false if
// there is none, or if the calling thread is inside of one already: what frees memory may allocate some.
bool make_room(Device device, size_t bytes, const Account* account);

}  // namespace tt
