// The checksum of zip archives: CRC-32 with the polynomial 0x04C11DB7, reflected.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tt::server {

// Extends a CRC-32: returns the checksum of the bytes for which it is `crc` (0: none), followed by `bytes`. With
// carry-less multiplication this takes much less time than writing to a disk. Thread-safe.
uint32_t update_checksum(uint32_t crc, const void* data, size_t size);

}  // namespace tt::server
