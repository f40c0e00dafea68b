// worker_arguments: the options with which an engine starts its workers.
#pragma once

#include <string>
#include <vector>

#include "server/daemon/flags.h"
#include "server/rpc/address.h"
#include "server/workers/workers.h"

namespace tt::server {

// Returns the options of the engine's workers. A worker reads neither the environment's nor a file's.
Workers::Options worker_options(const Flags& flags, const std::vector<Address>& addresses);

}  // namespace tt::server
