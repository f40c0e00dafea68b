// bytes_text: formats a number of bytes for messages.
#pragma once

#include <cstdint>
#include <string>

namespace tt {

std::string bytes_text(uint64_t bytes);  // "512 B", "1.50 GiB", "600 MiB"

}  // namespace tt
