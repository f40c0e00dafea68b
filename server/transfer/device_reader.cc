#include "server/transfer/device_reader.h"

#include <algorithm>
#include <cstring>

#include "engine/schema/error.h"

namespace tt::server {

DeviceReader::DeviceReader(std::shared_ptr<CopyStream> copy_stream, const Tensor& tensor)
    : copy_stream_(std::move(copy_stream)),
      tensor_(tensor),
      bytes_(static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype())) {}

DeviceReader::~DeviceReader() {
  if (!staging_) return;
  try {
    for (size_t i = 0; i < staging_->count(); ++i) {
      if ((*staging_)[i].passed)
        (*staging_)[i].passed->synchronize();  // wait, because the tensor's memory may be reused
    }
  } catch (const Error&) {  // a lost device no longer reads
  }
}

std::unique_ptr<Event> DeviceReader::fetch(char* into, size_t size) {
  std::unique_ptr<Event> there;
  copy_stream_->with_stream(tensor_.device(), [&](Stream& stream) {
    stream.copy(into, static_cast<const char*>(tensor_.data()) + read_, size);
    there = stream.record();
  });
  read_ += size;
  return there;
}

void DeviceReader::stage(Staging::Piece& piece) {
  piece.size = std::min(staging_->piece_bytes(), bytes_ - staged_);
  if (piece.size == 0) return;
  staging_->fetch(piece, static_cast<const char*>(tensor_.data()) + staged_);
  staged_ += piece.size;
}

size_t DeviceReader::read(char* into, size_t size) {
  size = std::min(size, left());
  if (size > 0 && !staging_) {
    staging_.emplace(copy_stream_, tensor_.device(), bytes_);
    for (size_t i = 0; i < staging_->count(); ++i) stage((*staging_)[i]);
  }
  for (size_t done = 0; done < size;) {
    Staging::Piece& piece = (*staging_)[piece_];
    if (offset_ == 0) piece.passed->synchronize();
    const size_t part = std::min(size - done, piece.size - offset_);
    std::memcpy(into + done, piece.data + offset_, part);
    done += part;
    offset_ += part;
    if (offset_ < piece.size) break;
    stage(piece);
    ++piece_;
    offset_ = 0;
  }
  read_ += size;
  return size;
}

}  // namespace tt::server
