#include "server/device_reader.h"

#include <algorithm>
#include <cstring>

#include "engine/rules/error.h"

namespace tt::server {

DeviceReader::DeviceReader(std::shared_ptr<CopyLane> lane, const Tensor& tensor)
    : tensor_(tensor),
      bytes_(static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype())),
      staging_(std::move(lane), tensor.device(), bytes_) {
  for (size_t i = 0; i < staging_.count(); ++i) fetch(staging_[i]);
}

DeviceReader::~DeviceReader() {
  try {
    for (size_t i = 0; i < staging_.count(); ++i) {
      if (staging_[i].passed) staging_[i].passed->synchronize();  // before the tensor's memory is another's
    }
  } catch (const Error&) {  // a lost device reads no more
  }
}

void DeviceReader::fetch(Staging::Piece& piece) {
  piece.size = std::min(staging_.piece_bytes(), bytes_ - fetched_);
  if (piece.size == 0) return;
  staging_.fetch(piece, static_cast<const char*>(tensor_.data()) + fetched_);
  fetched_ += piece.size;
}

size_t DeviceReader::read(char* into, size_t size) {
  size = std::min(size, left());
  for (size_t done = 0; done < size;) {
    Staging::Piece& piece = staging_[piece_];
    if (offset_ == 0) piece.passed->synchronize();
    const size_t part = std::min(size - done, piece.size - offset_);
    std::memcpy(into + done, piece.data + offset_, part);
    done += part;
    offset_ += part;
    if (offset_ < piece.size) break;
    fetch(piece);
    ++piece_;
    offset_ = 0;
  }
  read_ += size;
  return size;
}

}  // namespace tt::server
