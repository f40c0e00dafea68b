#include "server/transfer/staging.h"

#include <algorithm>

#include "engine/device/devices.h"
#include "engine/schema/error.h"

namespace tt::server {

Staging::Staging(std::shared_ptr<CopyStream> copy_stream, Device device, size_t bytes)
    : copy_stream_(std::move(copy_stream)),
      device_(device),
      allocator_(Devices::instance().backend(device).staging()),
      piece_bytes_(std::clamp<size_t>(bytes, 1, kPieceBytes)),
      count_(std::clamp<size_t>((bytes + piece_bytes_ - 1) / piece_bytes_, 1, kPieces)),
      memory_(static_cast<char*>(allocator_.allocate(count_ * piece_bytes_))) {
  for (size_t i = 0; i < count_; ++i) pieces_[i].data = memory_ + i * piece_bytes_;
}

Staging::~Staging() {
  const bool used =
      std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return piece.passed != nullptr; });
  try {
    if (used) copy_stream_->with_stream(device_, [&](Stream& stream) { allocator_.record_stream(memory_, stream); });
  } catch (const Error&) {  // a lost device no longer reads or writes
  }
  allocator_.deallocate(memory_, count_ * piece_bytes_);
}

void Staging::copy(Piece& piece, void* to, const void* from) {
  copy_stream_->with_stream(device_, [&](Stream& stream) {
    stream.copy(to, from, piece.size);
    piece.passed = stream.record();
  });
}

}  // namespace tt::server
