// Staging: a ring of host memory pieces that a device accesses directly, for one transfer.
//
// The memory belongs to the engine and is not charged to an account, like gRPC's buffers. Used by one thread.
#pragma once

#include <array>
#include <memory>

#include "engine/device/stream.h"
#include "engine/memory/allocator.h"
#include "server/transfer/copy_stream.h"

namespace tt::server {

class Staging {
 public:
  // Enough pieces for the host to fill or empty one piece while other pieces are being copied, and few enough that many
  // concurrent transfers hold little memory.
  static constexpr size_t kPieces = 4;
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  struct Piece {
    char* data = nullptr;
    size_t size = 0;                // bytes in use
    std::unique_ptr<Event> passed;  // event after the device's last copy; null: none yet
  };

  // Allocates pieces for a transfer of `bytes` over `copy_stream`. Throws Error if memory is exhausted.
  Staging(std::shared_ptr<CopyStream> copy_stream, Device device, size_t bytes);
  ~Staging();  // the memory is freed once copies in progress are complete
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  char* data() const { return memory_; }
  Piece& operator[](size_t i) { return pieces_[i % count_]; }
  size_t count() const { return count_; }
  size_t piece_bytes() const { return piece_bytes_; }
  Device device() const { return device_; }
  // Copies `piece` to or from device memory at `there`, in the stream's order.
  void send(Piece& piece, void* there) { copy(piece, there, piece.data); }
  void fetch(Piece& piece, const void* there) { copy(piece, piece.data, there); }
  CopyStream& copy_stream() { return *copy_stream_; }

 private:
  void copy(Piece& piece, void* to, const void* from);

  std::shared_ptr<CopyStream> copy_stream_;
  Device device_;
  Allocator& allocator_;
  size_t piece_bytes_;
  size_t count_;
  char* memory_;
  std::array<Piece, kPieces> pieces_;
};

}  // namespace tt::server
