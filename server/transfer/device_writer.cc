#include "server/transfer/device_writer.h"

#include <algorithm>
#include <cstring>

namespace tt::server {

DeviceWriter::DeviceWriter(std::shared_ptr<CopyStream> copy_stream, const Ref<Storage>& target, size_t begin)
    : target_(target), sent_(begin), staging_(std::move(copy_stream), target->device(), target->bytes() - begin) {}

void DeviceWriter::write(absl::Span<const char> bytes) {
  while (!bytes.empty()) {
    Staging::Piece& piece = staging_[piece_];
    if (piece.size == 0 && piece.passed) piece.passed->synchronize();
    const size_t part = std::min(bytes.size(), staging_.piece_bytes() - piece.size);
    std::memcpy(piece.data + piece.size, bytes.data(), part);
    piece.size += part;
    bytes.remove_prefix(part);
    if (piece.size == staging_.piece_bytes()) send(piece);
  }
}

void DeviceWriter::send(Staging::Piece& piece) {
  staging_.send(piece, static_cast<char*>(target_->data()) + sent_);
  sent_ += piece.size;
  piece.size = 0;
  ++piece_;
}

std::unique_ptr<Event> DeviceWriter::finish() {
  if (Staging::Piece& piece = staging_[piece_]; piece.size > 0) send(piece);
  std::unique_ptr<Event> copied;
  staging_.copy_stream().with_stream(staging_.device(), [&](Stream& stream) { copied = stream.record(); });
  return copied;
}

}  // namespace tt::server
