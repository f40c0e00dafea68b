// Counts what is in a frame before it is parsed.
#pragma once

#include <cstdint>

#include "google/protobuf/io/zero_copy_stream.h"

namespace tt::server {

struct FrameSize {
  uint64_t instructions = 0;
  uint64_t reads = 0;
  // Of host memory that the frame takes as messages and as a Program, about, and rather more than less.
  uint64_t bytes = 0;
};

// One pass over the wire format; allocates nothing. Stops once more than `most` bytes have been counted. False where
// the bytes are no frame.
bool measure_frame(google::protobuf::io::ZeroCopyInputStream* stream, uint64_t most, FrameSize* size);

}  // namespace tt::server
