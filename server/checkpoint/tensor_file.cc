#include "server/checkpoint/tensor_file.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tt::server {
namespace {

constexpr size_t kWindowBytes = size_t{4} << 20;
// Shorter runs are read through a window, if the gaps between them are short too.
constexpr size_t kDirectBytes = size_t{256} << 10;
constexpr uint64_t kMaxGap = uint64_t{64} << 10;

void check_described(const SafetensorsHeader& header, const std::vector<std::shared_ptr<TensorSnapshot>>& tensors) {
  const std::vector<StoredTensor>& stored = header.tensors();
  check(ErrorKind::kValue, stored.size() == tensors.size(), "the header describes ", stored.size(), " tensors, got ",
        tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSnapshot& tensor = *tensors[i];
    check(ErrorKind::kValue, stored[i].dtype == tensor.dtype() && stored[i].sizes == tensor.sizes(), "the header has ",
          stored[i].dtype, " of shape ", stored[i].sizes, " as tensor ", i, ", got ", tensor.dtype(), " of shape ",
          tensor.sizes());
  }
}

}  // namespace

uint32_t append_tensor(ReplacementFile& file, TensorSnapshot& tensor, CheckpointJob& job) {
  uint32_t checksum = 0;
  for (size_t left = tensor.bytes(); left != 0;) {
    job.check_cancelled();
    file.set_overlapped(!job.yields());
    const size_t size = tensor.read(file.space(), &checksum);
    file.advance(size);
    left -= size;
    job.advance(size);
    job.pause();
  }
  tensor.release();
  return checksum;
}

void write_tensors(const CheckpointRoot& root, std::string_view path, std::string_view header,
                   const std::vector<std::shared_ptr<TensorSnapshot>>& tensors, CheckpointJob& job) {
  uint64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor->bytes();
  check_described(SafetensorsHeader::parse(header, bytes), tensors);
  job.set_total(bytes);
  const uint64_t size = 8 + header.size() + bytes;
  const CheckpointRoot::Room room = root.reserve(path, size);
  ReplacementFile file(root.find(path, true), true);
  file.reserve(size);
  std::array<uint8_t, 8> length{};
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<uint8_t>(header.size() >> (8 * i));
  file.append(length.data(), length.size());
  file.append(header.data(), header.size());
  for (const auto& tensor : tensors) append_tensor(file, *tensor, job);
  job.check_cancelled();
  file.commit();
}

SliceReader::Runs SliceReader::runs_of(const StoredTensor& stored, SizesView offsets, SizesView sizes) const {
  const size_t dims = stored.sizes.size();
  const uint64_t item = item_size(stored.dtype);
  Runs runs;
  runs.strides.assign(dims, item);
  std::vector<uint64_t>& strides = runs.strides;
  for (size_t d = dims; d-- > 1;) strides[d - 1] = strides[d] * static_cast<uint64_t>(stored.sizes[d]);
  runs.outer = dims == 0 ? 0 : dims - 1;
  while (runs.outer > 0 && sizes[runs.outer] == stored.sizes[runs.outer]) --runs.outer;
  runs.bytes = dims == 0 ? item : strides[runs.outer] * static_cast<uint64_t>(sizes[runs.outer]);
  runs.offset = data_offset_ + stored.begin;
  for (size_t d = 0; d < dims; ++d) runs.offset += strides[d] * static_cast<uint64_t>(offsets[d]);
  return runs;
}

void SliceReader::read(const StoredTensor& stored, SizesView offsets, SizesView sizes, char* into) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  const Runs runs = runs_of(stored, offsets, sizes);
  const std::vector<uint64_t>& strides = runs.strides;
  const uint64_t run = runs.bytes;
  const uint64_t end = data_offset_ + stored.begin + stored.bytes;
  const uint64_t stride = runs.outer == 0 ? run : strides[runs.outer - 1];
  uint64_t offset = runs.offset;
  std::vector<int64_t> index(runs.outer, 0);
  for (;;) {
    copy_run(offset, run, stride, end, into);
    into += run;
    size_t d = runs.outer;
    for (; d > 0; --d) {
      offset += strides[d - 1];
      if (++index[d - 1] < sizes[d - 1]) break;
      offset -= strides[d - 1] * static_cast<uint64_t>(sizes[d - 1]);
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

void SliceReader::copy_run(uint64_t offset, size_t size, uint64_t stride, uint64_t end, char* into) {
  if (size >= kDirectBytes || stride - size > kMaxGap) {
    long_runs_.push_back({offset, size, into});
    return;
  }
  if (offset < window_begin_ || offset + size > window_end_) {
    window_.resize(kWindowBytes);
    window_begin_ = window_end_ = offset;
    const size_t fill = std::min<uint64_t>(kWindowBytes, end - offset);
    job_.check_cancelled();
    read_exactly(file_, window_.data(), fill, offset, path_);
    window_end_ = offset + fill;
  }
  std::memcpy(into, window_.data() + (offset - window_begin_), size);
  job_.advance(size);
}

void SliceReader::finish() {
  read_ranges(file_, path_, long_runs_, job_);
  long_runs_.clear();
}

}  // namespace tt::server
