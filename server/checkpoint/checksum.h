// The checksum of zip archives: CRC-32 with the polynomial 0x04C11DB7, reflected.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tt::server {

// Returns the CRC-32 of bytes whose beginning has the CRC-32 `crc` (0 for none). Processors with carry-less
// multiplication take a small part of the time that writing to a disk takes. Thread-safe.
uint32_t update_checksum(uint32_t crc, const void* data, size_t size);

}  // namespace tt::server
