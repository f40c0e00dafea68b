// Checksums of a session's image whose bytes a test has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/checkpoint/checksum.h"

namespace tt::server::testing {

inline uint64_t read64(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8 && at + i < bytes.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

inline void write32(uint32_t value, size_t at, std::string* bytes) {
  for (size_t i = 0; i < 4 && at + i < bytes->size(); ++i) (*bytes)[at + i] = static_cast<char>(value >> (8 * i));
}

// Computes the checksum of the part at `at` again. Returns the position after it.
inline size_t seal_part(size_t at, std::string* bytes) {
  const uint64_t size = read64(*bytes, at);
  if (at + 8 > bytes->size() || size > bytes->size() - at - 8) return bytes->size();
  const size_t end = at + 8 + static_cast<size_t>(size);
  write32(update_checksum(0, bytes->data() + at + 8, static_cast<size_t>(size)), end, bytes);
  return end + 4;
}

// Computes all checksums again: of the record, the structure and the contents, which follow "TTIMAGE" and the format.
inline void seal_image(std::string* image) {
  constexpr size_t kHead = 8;
  const size_t contents = seal_part(seal_part(kHead, image), image);
  if (contents + 4 > image->size()) return;
  const size_t length = image->size() - contents - 4;
  write32(update_checksum(0, image->data() + contents, length), image->size() - 4, image);
}

}  // namespace tt::server::testing
