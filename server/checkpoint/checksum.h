// The checksum of zip archives: CRC-32 with the polynomial 0x04C11DB7, reflected.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tt::server {

// Extends a CRC-32: returns the checksum of the bytes for which it is `crc` (0: none), followed by `bytes`. With
// carry-less multiplication this takes much less time than writing to a disk. Thread-safe.
uint32_t update_checksum(uint32_t crc, const void* data, size_t size);

// Returns the CRC-32 of bytes with the CRC-32 `first`, followed by `size` bytes with the CRC-32 `second`. Thread-safe.
uint32_t combine_checksums(uint32_t first, uint32_t second, uint64_t size);
// Copies bytes that do not overlap, and returns their checksum as update_checksum() does. Takes little more time than
// the copy, because each byte is used for both while it is in the processor's cache. Thread-safe.
uint32_t copy_with_checksum(uint32_t crc, void* to, const void* from, size_t size);

}  // namespace tt::server
