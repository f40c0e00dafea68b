// frame_size: measures a frame before it is parsed.
#pragma once

#include <cstdint>

#include "google/protobuf/io/zero_copy_stream.h"

namespace tt::server {

struct FrameSize {
  uint64_t instructions = 0;
  uint64_t reads = 0;
  // Estimated host memory of the frame as messages and as a Program; overestimates rather than underestimates.
  uint64_t bytes = 0;
};

// Measures a frame in one pass over the wire format, without allocating. Returns false if the frame is malformed, or as
// soon as `size->bytes` exceeds `max_bytes`.
bool measure_frame(google::protobuf::io::ZeroCopyInputStream* stream, uint64_t max_bytes, FrameSize* size);

}  // namespace tt::server
