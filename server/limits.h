// Limits: what one client may ask of the engine. Constant data, told to clients in HelloReply.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tt::server {

struct Limits {
  uint64_t max_frame_bytes = 4u << 20;
  uint64_t max_decoded_bytes = 64u << 20;  // of host memory that a frame takes once it is parsed, about
  uint64_t max_inline_bytes = 64u << 10;   // of one literal, and of one value in a reply
  uint64_t max_frames_in_flight = 64;      // sent and not acknowledged
  uint64_t max_handles = 1u << 20;
  uint64_t max_instructions = 1u << 16;  // in a frame
  uint64_t max_results = 1u << 16;       // of one instruction
  uint64_t max_names = 1u << 20;         // of results in a frame
  uint64_t max_transfers = 256;          // uploads under way or not yet taken
  uint64_t max_reads = 1u << 13;         // in a frame
  uint64_t max_reply_bytes = 4u << 20;   // inline values and messages of one reply
  uint64_t max_kept_bytes = 8u << 20;    // of replies kept for a resume; one reply always has room
};

// Of an Upload or a Download chunk through gRPC: between 1 and 4 MiB is where streams are fastest.
inline constexpr size_t kStreamChunkBytes = size_t{2} << 20;
// A client on a link that breaks often may want smaller ones; not below this.
inline constexpr size_t kMinStreamChunkBytes = size_t{64} << 10;
// What a chunk may have at most, from any client.
inline constexpr size_t kMaxChunkBytes = size_t{8} << 20;

}  // namespace tt::server
