// log: the daemon's log, to standard error, with gRPC's own lines in it.
#pragma once

#include <string>

namespace tt::server {

// `level` is one of spdlog's names. Once, at start.
void start_log(const std::string& level);

}  // namespace tt::server
