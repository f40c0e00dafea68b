// Charges host memory to the session whose instruction the calling thread executes.
#pragma once

#include <string_view>

#include "engine/memory/account.h"

namespace tt {

// Returns the charge for `bytes` of `what`, which names it in the error. Without a session nothing is charged. Throws
// Error (OutOfMemoryError) if the session's limit has no room.
HostCharge charge_session(std::string_view what, uint64_t bytes);

}  // namespace tt
