// ReplacementFile: a new file that replaces another one atomically.
//
// Until commit() the other file is unchanged; the destructor removes a file that was not committed. If the process
// dies, a later writer in the same folder removes the file. Used by one thread; every function throws Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "base/file_descriptor.h"
#include "server/checkpoint/io_buffer.h"
#include "server/checkpoint/root.h"

namespace tt::server {

class ReplacementFile {
 public:
  // Creates a file, without contents, in the place's folder. `bypasses_cache`: whether bytes go to the disk without the
  // page cache, where the file system supports it; this takes less processor time, and evicts nothing from the cache.
  explicit ReplacementFile(CheckpointRoot::Place place, bool bypasses_cache = false);
  ~ReplacementFile();
  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;

  // Allocates disk space for all bytes, where the file system supports it. Fails if the disk is full.
  void reserve(uint64_t bytes);
  void append(const void* data, size_t size);
  // Memory for the next bytes, at least one. Call advance() with the number of bytes that were written to it.
  absl::Span<char> space();
  void advance(size_t bytes) { buffered_ += bytes; }
  // Replaces bytes that were appended. append() must not be called afterwards.
  void overwrite(uint64_t offset, std::string_view bytes);
  // Writes everything to the disk, and renames the file to the place's name.
  void commit();

 private:
  [[noreturn]] void fail_to(const char* verb) const;
  void write_buffer();
  void write_end();  // of the file, whose size need not be aligned

  const CheckpointRoot::Place place_;
  std::string temporary_;  // name in the folder; empty once committed
  FileDescriptor file_;
  bool is_direct_ = false;  // without the page cache, which requires aligned memory, offsets and sizes
  uint64_t size_ = 0;       // bytes written
  const IoBuffer buffer_;   // bytes that are not written yet
  size_t buffered_ = 0;
};

// Names of such files. Clients cannot use them.
std::string new_temporary_name();
bool is_temporary_name(std::string_view name);

}  // namespace tt::server
