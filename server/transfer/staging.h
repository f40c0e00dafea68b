// Staging: a ring of pieces of host memory that a device reads and writes by itself, for one transfer.
//
// It is the engine's own, outside of any account, as gRPC's buffers are. Used by one thread.
#pragma once

#include <array>
#include <memory>

#include "engine/device/stream.h"
#include "engine/memory/allocator.h"
#include "server/transfer/copy_stream.h"

namespace tt::server {

class Staging {
 public:
  // Enough that the host fills or empties one while others are on their way, and few enough that many transfers at once
  // hold little.
  static constexpr size_t kPieces = 4;
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  struct Piece {
    char* data = nullptr;
    size_t size = 0;                // of what is in it
    std::unique_ptr<Event> passed;  // the device has done with it; null: it was never given one
  };

  // For `bytes` in all, over `lane`. Throws Error where there is no memory.
  Staging(std::shared_ptr<CopyStream> lane, Device device, size_t bytes);
  ~Staging();  // what is on its way keeps its memory until it is there
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  char* data() const { return memory_; }
  Piece& operator[](size_t i) { return pieces_[i % count_]; }
  size_t count() const { return count_; }
  size_t piece_bytes() const { return piece_bytes_; }
  Device device() const { return device_; }
  // In the lane's order: `piece` and as many bytes at `there`.
  void send(Piece& piece, void* there) { copy(piece, there, piece.data); }
  void fetch(Piece& piece, const void* there) { copy(piece, piece.data, there); }
  CopyStream& lane() { return *lane_; }

 private:
  void copy(Piece& piece, void* to, const void* from);

  std::shared_ptr<CopyStream> lane_;
  Device device_;
  Allocator& allocator_;
  size_t piece_bytes_;
  size_t count_;
  char* memory_;
  std::array<Piece, kPieces> pieces_;
};

}  // namespace tt::server
