// Reads ranges of a file at the rate of the disk. Used on checkpoint threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/schema/device.h"
#include "server/checkpoint/job.h"
#include "server/transfer/copy_stream.h"

namespace tt::server {

// Bytes of a file, and the memory for them: the host's, or a device's.
struct FileRange {
  uint64_t offset = 0;
  uint64_t size = 0;
  char* into = nullptr;
  Device device{};
};

// Reads all ranges of an open file, which may overlap in the file but not in memory; returns the CRC-32 of each.
//
// Large reads are divided among threads of this call, so that the disk has several requests at a time and checksums are
// computed meanwhile. Bytes that are not in the page cache are read without it (O_DIRECT) where the file system
// supports it: this takes less of the processors' time, and evicts nothing from it. Small reads use the page cache.
// Bytes for a device pass through some megabytes of memory that it can access; the device has received them when the
// call returns or throws. Throws Error, also if the file ends before a range does or becomes shorter meanwhile. `path`
// is for messages. `copy_stream` is required if a range is on a device.
std::vector<uint32_t> read_ranges(int file, std::string_view path, const std::vector<FileRange>& ranges,
                                  CheckpointJob& job, const std::shared_ptr<CopyStream>& copy_stream = nullptr);

}  // namespace tt::server
