// The operators of engine/ops/pull.yaml: kernels over PullService.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::distributed {

void register_pull(Dispatcher& dispatcher);

}  // namespace tt::distributed
