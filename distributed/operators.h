// The operators of engine/ops/distributed.yaml: kernels over GroupService.
#pragma once

#include <cstdint>

#include "engine/dispatch/dispatcher.h"
#include "engine/schema/error.h"

namespace tt::distributed {

class GroupService;

void register_distributed(Dispatcher& dispatcher);

// Enters the collective that a call with poisoned arguments would have run, with this error. No effect for other
// operators. Throws Error if the group does not exist.
void enter_with_error(GroupService& service, const Op& op, Args args, const Error& error, uint32_t site);

}  // namespace tt::distributed
