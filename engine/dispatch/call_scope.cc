#include "engine/dispatch/call_scope.h"

namespace tt {

CallScope& CallScope::current() {
  if (AllocScope* scope = current_or_null()) [[likely]]
    return static_cast<CallScope&>(*scope);
  thread_local CallScope nobody;
  return nobody;
}

}  // namespace tt
