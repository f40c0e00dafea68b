// Files in formats that only clients interpret: bytes of the client between the bytes of tensors. The engine computes
// the tensors' checksums and writes them at the client's indices. Used on checkpoint threads; functions throw Error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/checkpoint/job.h"
#include "server/checkpoint/root.h"
#include "server/checkpoint/snapshot.h"

namespace tt::server {

// The contents of a file.
struct FileParts {
  std::string bytes;  // the client's
  std::vector<std::shared_ptr<TensorSnapshot>> tensors;
  std::vector<int64_t> positions;  // ascending: how many of the client's bytes come before each tensor
  // Where CRC-32 checksums (as in zip archives) replace client's bytes: pairs of a tensor's number and an index in
  // `bytes`.
  std::vector<int64_t> places;
  bool is_hexadecimal = false;  // checksums are 8 hexadecimal digits instead of 4 bytes, little endian

  uint64_t size() const;
  // Throws Error (ValueError) if a number is out of range.
  void check_numbers() const;
};

// Replaces the file at `path`, atomically.
void write_parts(const CheckpointRoot& root, std::string_view path, FileParts& parts, CheckpointJob& job);

}  // namespace tt::server
