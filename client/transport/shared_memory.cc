#include "client/transport/shared_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/strings/numbers.h"
#include "engine/schema/error.h"
#include "proto/ring_copy.h"

namespace tt::client {
namespace {

using shared_ring::Outcome;

// Minimum number of bytes per copying thread. Starting a thread takes about as long as copying a quarter of this.
constexpr size_t kThreadBytes = size_t{1} << 20;
// Maximum number of copying threads. Memory bandwidth does not increase with more threads.
constexpr unsigned kMaxThreads = 8;

unsigned threads_for(size_t bytes) {
  static const unsigned allowed = SharedMemory::allowed_threads();
  return static_cast<unsigned>(std::clamp<size_t>(bytes / kThreadBytes, 1, allowed));
}

absl::Status failure(Outcome outcome) {
  return outcome == Outcome::kStopped ? absl::CancelledError("the transfer was cancelled")
                                      : absl::DataLossError("the counters in the shared memory are invalid");
}

}  // namespace

SharedMemory::SharedMemory(std::unique_ptr<shared_ring::Segment> segment)
    : segment_(std::move(segment)),
      upload_{shared_ring::LaneEnd::producer(segment_->header().upload, segment_->upload_chunks())},
      download_{shared_ring::LaneEnd::consumer(segment_->header().download, segment_->download_chunks())} {}

unsigned SharedMemory::allowed_threads() {
  const char* text = std::getenv("TELETENSOR_TRANSFER_THREADS");
  // Half of the cores copy; the engine, on the same host, uses the other half.
  if (text == nullptr) return std::clamp(std::thread::hardware_concurrency() / 2, 1u, kMaxThreads);
  unsigned count = 0;
  check(ErrorKind::kValue, absl::SimpleAtoi(text, &count) && count > 0 && count <= shared_ring::kChunks,
        "[connect] TELETENSOR_TRANSFER_THREADS must be a number from 1 to ", shared_ring::kChunks, ", got '", text,
        "'");
  return count;
}

std::shared_ptr<SharedMemory> SharedMemory::open(const v1::SharedMemory& offer) {
  auto segment = shared_ring::Segment::open(offer.pid(), offer.file_descriptor(), offer.bytes(), offer.nonce());
  return segment ? std::shared_ptr<SharedMemory>(new SharedMemory(std::move(segment))) : nullptr;
}

std::unique_ptr<SharedMemory::Pipes> SharedMemory::claim_pipes(const std::shared_ptr<SharedMemory>& memory) {
  if (memory->has_stream_.exchange(true)) return nullptr;
  const shared_ring::Segment& segment = *memory->segment_;
  shared_ring::Header& header = segment.header();
  return std::make_unique<Pipes>(
      Pipes{memory, {header.frames, segment.frame_bytes()}, {header.replies, segment.reply_bytes()}});
}

std::pair<std::unique_lock<Mutex>, std::unique_lock<Mutex>> SharedMemory::claim_all() {
  std::unique_lock upload(upload_.mutex, std::try_to_lock);
  std::unique_lock download(download_.mutex, std::try_to_lock);
  if (!upload || !download) return {};
  return {std::move(upload), std::move(download)};
}

template <typename Copy>
absl::Status SharedMemory::move(Lane& lane, size_t bytes, Copy copy, absl::FunctionRef<bool()> should_continue,
                                absl::FunctionRef<bool()> stop) {
  lane.mutex.assume_held();
  Outcome outcome = shared_ring::RingCopy(lane.end, bytes, copy, should_continue, stop).run(threads_for(bytes));
  if (outcome == Outcome::kReady) return absl::OkStatus();
  lane.broken = true;
  return failure(outcome);
}

absl::Status SharedMemory::write(absl::Span<const char> bytes, absl::FunctionRef<bool()> should_continue,
                                 absl::FunctionRef<bool()> stop) {
  auto copy = [&](char* chunk, size_t at, size_t size) { std::memcpy(chunk, bytes.data() + at, size); };
  return move(upload_, bytes.size(), copy, should_continue, stop);
}

absl::Status SharedMemory::read(absl::Span<char> into, absl::FunctionRef<bool()> should_continue,
                                absl::FunctionRef<bool()> stop) {
  auto copy = [&](const char* chunk, size_t at, size_t size) { std::memcpy(into.data() + at, chunk, size); };
  return move(download_, into.size(), copy, should_continue, stop);
}

}  // namespace tt::client
