#include "server/transfer/shared_segment.h"

#include <sys/random.h>

#include <algorithm>
#include <atomic>

#include "engine/device/devices.h"
#include "server/transfer/inflight_chunks.h"

namespace tt::server {
namespace {

using shared_ring::kChunkBytes;
using shared_ring::kChunks;
using shared_ring::LaneEnd;
using shared_ring::Outcome;

// Maximum of segments per engine. A segment's pages stay allocated until its session ends.
constexpr int kMaxSegments = 128;
std::atomic<int> segments_in_use{0};

// Maximum wait for a lane. A lane whose last transfer has just been cancelled becomes free within moments.
constexpr std::chrono::seconds kLaneWait{1};

// Minimum size of a transfer for which the device accesses the lane directly. Pinning a lane takes some milliseconds,
// and for a smaller transfer the wait for the device takes longer than the copy that is saved.
constexpr uint64_t kInPlaceBytes = 1 << 20;
// Chunks per device copy: starting a copy takes about as long as copying one chunk. While the device has kMaxCopies
// copies in flight, smaller copies are not issued.
constexpr uint32_t kCopyChunks = kChunks / 8;
constexpr size_t kMaxCopies = 2;

absl::Status outcome_status(Outcome outcome) {
  if (outcome == Outcome::kReady) return absl::OkStatus();
  if (outcome == Outcome::kStopped) return absl::CancelledError("the transfer was cancelled");
  return absl::InvalidArgumentError("the counters in the shared segment are invalid");
}

// Moves `left` bytes through chunks that a device reads or writes directly. `begin(chunks, size)` starts the copy of
// the next chunks and returns an event that passes when the copy is complete.
template <typename Begin>
absl::Status copy_in_flight(LaneEnd& end, uint64_t left, Begin&& begin, absl::FunctionRef<bool()> should_continue) {
  InflightChunks inflight(end);
  while (left != 0) {
    inflight.pass_completed();
    const uint32_t next = inflight.next(), adjacent = kChunks - next % kChunks;
    const uint64_t chunks_left = (left - 1) / kChunkBytes + 1;
    const auto max_chunks = static_cast<uint32_t>(std::min<uint64_t>({kCopyChunks, adjacent, chunks_left}));
    uint32_t chunks = 0;
    Outcome outcome = end.ready(next, &chunks);
    if (outcome == Outcome::kReady && chunks < max_chunks && inflight.size() >= (chunks == 0 ? 1 : kMaxCopies)) {
      inflight.await_first();  // more chunks may become ready during the wait
      continue;
    }
    if (outcome == Outcome::kReady && chunks == 0) outcome = end.await(next, should_continue);
    if (outcome != Outcome::kReady) return outcome_status(outcome);
    if (chunks == 0) continue;
    chunks = std::min(chunks, max_chunks);
    const uint64_t size = std::min(left, chunks * kChunkBytes);
    absl::StatusOr<std::shared_ptr<Event>> copied = begin(end.chunk(next), size);
    if (!copied.ok()) return copied.status();
    inflight.add(chunks, *std::move(copied));
    left -= size;
  }
  while (inflight.size() != 0) inflight.await_first();
  return absl::OkStatus();
}

// Locks a lane for one transfer, runs the transfer, and marks the lane as broken if the transfer fails.
template <typename AnyLane>
absl::Status hold_lane(AnyLane& lane, absl::FunctionRef<absl::Status()> transfer) {
  if (!lane.mutex.try_lock_for(kLaneWait))
    return absl::FailedPreconditionError("the lane is in use by another transfer");
  MutexLock lock(lane.mutex, std::adopt_lock);
  if (lane.broken) return absl::FailedPreconditionError("the lane was broken by an earlier transfer");
  lane.broken = true;  // reset when the transfer succeeds
  absl::Status status = transfer();
  lane.broken = !status.ok();
  return status;
}

}  // namespace

std::shared_ptr<SharedSegment> SharedSegment::create(std::shared_ptr<Account> account) {
  uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) return nullptr;
  if (segments_in_use.fetch_add(1) >= kMaxSegments) {
    segments_in_use.fetch_sub(1);
    return nullptr;
  }
  int fd = memfd_create("teletensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  bool sealed = fd >= 0 && ftruncate(fd, shared_ring::kSegmentBytes) == 0 &&
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (!sealed && fd >= 0) close(fd);
  std::unique_ptr<shared_ring::Segment> segment = sealed ? shared_ring::Segment::map(fd) : nullptr;
  if (!segment) {
    segments_in_use.fetch_sub(1);
    return nullptr;
  }
  segment->header().nonce = nonce;
  segment->header().layout = shared_ring::kLayout;
  return std::shared_ptr<SharedSegment>(new SharedSegment(std::move(segment), nonce, std::move(account)));
}

SharedSegment::SharedSegment(std::unique_ptr<shared_ring::Segment> segment, uint64_t nonce,
                             std::shared_ptr<Account> account)
    : segment_(std::move(segment)),
      nonce_(nonce),
      charge_(std::move(account), shared_ring::kSegmentBytes),
      upload_{.end = LaneEnd::consumer(segment_->header().upload, segment_->upload_chunks())},
      download_{.end = LaneEnd::producer(segment_->header().download, segment_->download_chunks())} {}

SharedSegment::~SharedSegment() { segments_in_use.fetch_sub(1); }

v1::SharedMemory SharedSegment::describe() const {
  v1::SharedMemory wire;
  wire.set_pid(getpid());
  wire.set_file_descriptor(segment_->descriptor());
  wire.set_bytes(shared_ring::kSegmentBytes);
  wire.set_nonce(nonce_);
  return wire;
}

// Whether `device` can access the lane directly, and `bytes` is large enough for that to be faster.
bool SharedSegment::device_can_access(Lane& lane, std::optional<Device> device, uint64_t bytes) {
  if (!device || bytes < kInPlaceBytes) return false;
  if (!lane.pages) lane.pages.emplace(Devices::instance().backend(*device), lane.end.chunk(0), shared_ring::kLaneBytes);
  return lane.pages->pinned();
}

absl::Status SharedSegment::receive(Upload& upload, absl::FunctionRef<bool()> should_continue) {
  client_exited();  // records that the client is present
  LaneEnd& end = upload_.end;
  auto in_place = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(upload_.mutex) -> absl::Status {
    auto begin = [&](const char* chunks, size_t size) { return upload.append_in_place({chunks, size}); };
    try {
      return copy_in_flight(end, upload.left(), begin, should_continue);
    } catch (const Error& error) {
      return upload.fail(error);
    }
  };
  return hold_lane(upload_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(upload_.mutex) -> absl::Status {
    if (device_can_access(upload_, upload.device(), upload.left())) return in_place();
    while (upload.left() != 0) {
      absl::Status ready = outcome_status(end.await(end.passed(), should_continue));
      if (!ready.ok()) return ready;
      absl::Status taken = upload.append({end.chunk(end.passed()), std::min<uint64_t>(upload.left(), kChunkBytes)});
      end.pass(1);
      if (!taken.ok()) return taken;
    }
    return absl::OkStatus();
  });
}

absl::Status SharedSegment::send(ByteSource& tensor, absl::FunctionRef<bool()> should_continue) {
  client_exited();
  LaneEnd& end = download_.end;
  return hold_lane(download_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(download_.mutex) -> absl::Status {
    if (device_can_access(download_, tensor.device(), tensor.left())) {
      auto begin = [&](char* chunks, size_t size) {
        return absl::StatusOr<std::shared_ptr<Event>>(tensor.fetch(chunks, size));
      };
      return copy_in_flight(end, tensor.left(), begin, should_continue);
    }
    while (tensor.left() != 0) {
      absl::Status ready = outcome_status(end.await(end.passed(), should_continue));
      if (!ready.ok()) return ready;
      tensor.read(end.chunk(end.passed()), kChunkBytes);
      end.pass(1);
    }
    return absl::OkStatus();
  });
}

std::unique_ptr<SharedSegment::Pipes> SharedSegment::claim_pipes() {
  if (has_stream_.exchange(true)) return nullptr;
  shared_ring::Header& header = segment_->header();
  return std::make_unique<Pipes>(
      Pipes{{header.frames, segment_->frame_bytes()}, {header.replies, segment_->reply_bytes()}});
}

bool SharedSegment::client_exited() {
  if (segment_->client_present()) {
    client_seen_ = true;
    return false;
  }
  return client_seen_;
}

}  // namespace tt::server
