// resident_bytes: resident memory of this process, from /proc. Thread-safe.
#pragma once

#include <cstdint>

namespace tt::server {

uint64_t resident_bytes();

}  // namespace tt::server
