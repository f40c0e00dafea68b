// Reads and writes the tensors of safetensors files. Used on checkpoint threads; functions throw Error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor/tensor.h"
#include "formats/safetensors.h"
#include "server/checkpoint/job.h"
#include "server/checkpoint/range_reader.h"
#include "server/checkpoint/replacement_file.h"
#include "server/checkpoint/root.h"
#include "server/checkpoint/snapshot.h"

namespace tt::server {

// Writes a file with this header and tensors, and replaces the file at `path`. The header must
// describe the tensors, in the order of their bytes.
void write_tensors(const CheckpointRoot& root, std::string_view path, std::string_view header,
                   const std::vector<std::shared_ptr<TensorSnapshot>>& tensors, CheckpointJob& job);

// Appends a tensor to a file in row-major order, and releases it; returns the CRC-32 of its bytes.
uint32_t append_tensor(ReplacementFile& file, TensorSnapshot& tensor, CheckpointJob& job);

// Reads boxes of the tensors of one file. Used by one thread.
class SliceReader {
 public:
  // Requires an open file.
  SliceReader(int file, std::string_view path, uint64_t data_offset, CheckpointJob& job)
      : file_(file), path_(path), data_offset_(data_offset), job_(job) {}

  // Copies the box of `stored` that begins at index `offsets` and has `sizes` to `into`, in row-major order. Requires a
  // box within the tensor. Long runs of bytes are read by finish().
  void read(const StoredTensor& stored, SizesView offsets, SizesView sizes, char* into);
  void finish();

 private:
  // A box in the file: runs of consecutive bytes, which are the elements along dimension `outer` and those after it.
  struct Runs {
    std::vector<uint64_t> strides;  // in bytes
    size_t outer = 0;
    uint64_t bytes = 0;   // of a run
    uint64_t offset = 0;  // of the first run in the file
  };
  Runs runs_of(const StoredTensor& stored, SizesView offsets, SizesView sizes) const;
  void copy_run(uint64_t offset, size_t size, uint64_t stride, uint64_t end, char* into);

  const int file_;
  const std::string path_;
  const uint64_t data_offset_;
  CheckpointJob& job_;
  std::vector<FileRange> long_runs_;
  std::vector<char> window_;  // bytes of the file, for short runs
  uint64_t window_begin_ = 0;
  uint64_t window_end_ = 0;
};

}  // namespace tt::server
