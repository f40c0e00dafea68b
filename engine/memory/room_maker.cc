#include "engine/memory/room_maker.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/mutex.h"
#include "engine/memory/alloc_scope.h"

namespace tt {
namespace {

struct Registration {
  Mutex mutex;
  std::shared_ptr<RoomMaker> maker ABSL_GUARDED_BY(mutex);
};

// Never destroyed: threads may allocate while the process exits.
Registration& registration() {
  static auto* const instance = new Registration;
  return *instance;
}

thread_local bool is_making_room = false;

}  // namespace

void set_room_maker(std::shared_ptr<RoomMaker> maker) {
  Registration& here = registration();
  MutexLock lock(here.mutex);
  here.maker.swap(maker);  // the previous one is destroyed after the lock is released
}

bool make_room(Device device, size_t bytes, const Account* account) {
  if (is_making_room) return false;
  std::shared_ptr<RoomMaker> maker;
  {
    Registration& here = registration();
    MutexLock lock(here.mutex);
    maker = here.maker;
  }
  if (!maker) return false;
  if (account == nullptr) account = AllocScope::current().account.get();
  is_making_room = true;
  const absl::Cleanup ended = [] { is_making_room = false; };
  return maker->make_room(device, bytes, account);
}

}  // namespace tt
