// Limits: limits on one session. Constant. HelloReply contains the limits that a client needs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tt::server {

struct Limits {
  uint64_t max_frame_bytes = 4u << 20;
  uint64_t max_decoded_bytes = 64u << 20;  // approximate host memory of a parsed frame
  uint64_t max_inline_bytes = 64u << 10;   // maximum size of one literal, or of one value in a reply
  uint64_t max_frames_in_flight = 512;     // frames sent and not yet acknowledged
  uint64_t max_handles = 1u << 20;
  uint64_t max_instructions = 1u << 16;  // per frame
  uint64_t max_results = 1u << 18;       // per instruction
  uint64_t max_names = 1u << 20;         // result names per frame
  uint64_t max_transfers = 256;          // uploads in progress or not yet consumed
  uint64_t max_reads = 1u << 13;         // per frame
  uint32_t max_scalar_reads = 1u << 13;  // per frame (v1::Frame::scalar_reads)
  uint32_t max_templates = 1u << 12;     // repeated instructions that a stream remembers (TemplateTable)
  uint64_t max_reply_bytes = 4u << 20;   // inline values and error messages per reply
  uint64_t max_group_threads = 1'024;    // threads of process groups and stores; 0: no limit
  uint64_t max_kept_bytes = 8u << 20;    // total size of kept replies (Replies); larger than any single reply
};

// Size of an Upload or Download chunk through gRPC; streams are fastest between 1 and 4 MiB.
inline constexpr size_t kStreamChunkBytes = size_t{2} << 20;
// Minimum size of a Download chunk. A client requests small chunks if its link breaks often.
inline constexpr size_t kMinStreamChunkBytes = size_t{64} << 10;
// Maximum size of a chunk that a client may send.
inline constexpr size_t kMaxChunkBytes = size_t{8} << 20;

}  // namespace tt::server
