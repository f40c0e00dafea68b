// PreparedMemory: obtains pages from the system before a process takes over sessions, so that they do not have to be
// obtained while the clients wait. A fresh page takes longer than its copy: the kernel zeroes it, and in a virtual
// machine the host may have to find it first.
//
// The old process describes the CPU memory that it has in use (memory_in_use()), in the order of sizes. The new one
// allocates blocks of these sizes from its own pool and writes to each page. When the object is destroyed, the pool has
// the blocks, with their pages, for the sessions. What cannot be obtained, or not in time, is obtained later as usual.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tt::server {

// The bytes in small blocks and the sizes of the large ones, as short text. Takes the pool's lock.
std::string memory_in_use();

class PreparedMemory {
 public:
  // `description` is what memory_in_use() returned; of another text nothing is used. Returns at the deadline at the
  // latest, except for the time of a piece.
  PreparedMemory(absl::string_view description, std::chrono::steady_clock::time_point deadline);
  ~PreparedMemory();
  PreparedMemory(const PreparedMemory&) = delete;
  PreparedMemory& operator=(const PreparedMemory&) = delete;
  // Bytes whose pages were obtained.
  size_t bytes() const { return bytes_; }

 private:
  struct Piece {
    char* data;
    size_t bytes;
  };
  std::vector<Piece> blocks_;
  size_t bytes_ = 0;
};

}  // namespace tt::server
