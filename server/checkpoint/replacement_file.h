// ReplacementFile: a new file that replaces another one atomically.
//
// Until commit() the other file is unchanged; the destructor removes a file that was not committed. If the process
// dies, a later writer in the same folder removes the file. Used by one thread; every function throws Error. The error
// of a write on another thread is thrown by a later function.
#pragma once

#include <array>
#include <cstdint>
#include <future>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "base/file_descriptor.h"
#include "distributed/group/task_queue.h"
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
  // Whether full buffers are written on another thread while the next one is filled; not at first. This takes
  // kBuffers buffers instead of one.
  void set_overlapped(bool overlapped) { is_overlapped_ = overlapped; }
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
  static constexpr size_t kBuffers = 3;  // to fill, to write next, and being written
  static constexpr size_t kBufferBytes = size_t{8} << 20;
  struct Buffer {
    IoBuffer memory;
    std::future<void> written;  // the last write of it on the other thread
  };

  void write_bytes(const char* data, size_t size);  // at the end of the file
  void write_buffer();
  void wait_for_writes();
  void write_end();  // of the file, whose size need not be aligned

  const CheckpointRoot::Place place_;
  std::string temporary_;  // name in the folder; empty once committed
  FileDescriptor file_;
  bool is_overlapped_ = false;
  // Used by write_bytes().
  bool is_direct_ = false;  // without the page cache, which requires aligned memory, offsets and sizes
  uint64_t size_ = 0;       // bytes written

  std::array<Buffer, kBuffers> buffers_;
  size_t filled_ = 0;              // the buffer to fill
  size_t buffered_ = 0;            // bytes in it
  distributed::TaskQueue writes_;  // destroyed first: it waits for them
};

// Names of such files. Clients cannot use them.
std::string new_temporary_name();
bool is_temporary_name(std::string_view name);

}  // namespace tt::server
