// The operators of engine/ops/checkpoint.yaml: kernels over CheckpointService.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt::server {

void register_checkpoints(Dispatcher& dispatcher);

}  // namespace tt::server
