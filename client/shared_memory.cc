#include "client/shared_memory.h"

#include <algorithm>
#include <cstring>

namespace tt::client {
namespace {

using shared_ring::kChunkBytes;
using shared_ring::Outcome;

absl::Status failure(Outcome outcome) {
  return outcome == Outcome::kStopped ? absl::CancelledError("the transfer was given up")
                                      : absl::DataLossError("the shared memory's counters are wrong");
}

}  // namespace

SharedMemory::SharedMemory(std::unique_ptr<shared_ring::Segment> segment)
    : segment_(std::move(segment)),
      upload_(segment_->header().upload, segment_->upload_chunks()),
      download_(segment_->header().download, segment_->download_chunks()) {}

std::shared_ptr<SharedMemory> SharedMemory::open(const v1::SharedMemory& offer) {
  auto segment = shared_ring::Segment::open(offer.pid(), offer.file_descriptor(), offer.bytes(), offer.nonce());
  return segment ? std::shared_ptr<SharedMemory>(new SharedMemory(std::move(segment))) : nullptr;
}

absl::Status SharedMemory::write(absl::Span<const char> bytes, absl::FunctionRef<bool()> go_on) {
  for (size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    char* chunk = nullptr;
    Outcome outcome = upload_.end.claim(&chunk, go_on);
    if (outcome != Outcome::kReady) {
      upload_.broken = true;
      return failure(outcome);
    }
    std::memcpy(chunk, bytes.data() + at, std::min(kChunkBytes, bytes.size() - at));
    upload_.end.publish();
  }
  return absl::OkStatus();
}

absl::Status SharedMemory::read(absl::Span<char> into, absl::FunctionRef<bool()> go_on) {
  for (size_t at = 0; at < into.size(); at += kChunkBytes) {
    const char* chunk = nullptr;
    Outcome outcome = download_.end.next(&chunk, go_on);
    if (outcome != Outcome::kReady) {
      download_.broken = true;
      return failure(outcome);
    }
    std::memcpy(into.data() + at, chunk, std::min(kChunkBytes, into.size() - at));
    download_.end.release();
  }
  return absl::OkStatus();
}

}  // namespace tt::client
