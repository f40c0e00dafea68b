#include "engine/memory/alloc_scope.h"

#include "engine/device/devices.h"

namespace tt {
namespace {

thread_local AllocScope* current_scope = nullptr;

}  // namespace

Stream& AllocScope::stream(Device device) { return Devices::instance().stream(device); }

AllocScope& AllocScope::current() {
  if (current_scope != nullptr) [[likely]]
    return *current_scope;
  thread_local AllocScope nobody;
  return nobody;
}

AllocScope* AllocScope::current_or_null() { return current_scope; }

void AllocScope::set_current(AllocScope* scope) { current_scope = scope; }

}  // namespace tt
