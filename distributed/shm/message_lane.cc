#include "distributed/shm/message_lane.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/schema/error.h"

namespace tt::distributed::shm {
namespace {

// Added to the bytes of each reordered message, so that the number of empty messages is bounded too.
constexpr size_t kMessageOverhead = 256;

void advance(std::atomic<uint32_t>& counter, uint32_t value, std::atomic<uint32_t>& sleeps) {
  counter.store(value, std::memory_order_seq_cst);
  if (sleeps.load(std::memory_order_seq_cst) != 0) internal::futex_wake(counter);
}

}  // namespace

LaneSender::LaneSender(const Segment& segment, int peer, std::chrono::microseconds spin)
    : segment_(segment),
      peer_(peer),
      spin_(spin),
      header_(segment.lane_header(segment.rank(), peer)),
      chunks_(segment.lane(segment.rank(), peer)) {}

void LaneSender::send(uint32_t tag, absl::Span<const char> bytes, Problem problem) {
  check(!broken_, "send to rank ", peer_, ": an earlier send was interrupted in the middle of its message");
  size_t done = 0;
  do {
    const auto has_space = [&] { return produced_ - header_.consumed.load(std::memory_order_seq_cst) < kChunks; };
    if (auto text = wait(header_.consumed, header_.producer_sleeps, spin_, has_space, problem)) {
      broken_ = done > 0;
      fail(ErrorKind::kRuntime, *text);
    }
    const uint32_t place = produced_ % kChunks;
    char* chunk = chunks_ + place * kChunkBytes;
    if (allocated_ <= place) {
      if (!segment_.allocate(chunk, kChunkBytes)) {
        broken_ = done > 0;
        fail(ErrorKind::kRuntime, "send to rank ", peer_, ": the host's shared memory is exhausted");
      }
      allocated_ = place + 1;
    }
    if (done == 0) {
      header_.messages[place].bytes.store(bytes.size(), std::memory_order_relaxed);
      header_.messages[place].tag.store(tag, std::memory_order_relaxed);
    }
    const size_t n = std::min(kChunkBytes, bytes.size() - done);
    if (n > 0) std::memcpy(chunk, bytes.data() + done, n);
    done += n;
    advance(header_.produced, ++produced_, header_.consumer_sleeps);
  } while (done < bytes.size());
}

LaneReceiver::LaneReceiver(const Segment& segment, int peer, std::chrono::microseconds spin)
    : peer_(peer),
      spin_(spin),
      header_(segment.lane_header(peer, segment.rank())),
      chunks_(segment.lane(peer, segment.rank())) {}

void LaneReceiver::wait_for_chunk(Problem problem) {
  const auto has_chunk = [&] { return header_.produced.load(std::memory_order_seq_cst) != consumed_; };
  if (auto text = wait(header_.produced, header_.consumer_sleeps, spin_, has_chunk, problem)) {
    fail(ErrorKind::kRuntime, *text);
  }
}

void LaneReceiver::read(char* to, size_t kept, uint64_t total, Problem problem) {
  broken_ = true;  // until the last chunk
  uint64_t done = 0;
  do {
    wait_for_chunk(problem);
    const size_t n = static_cast<size_t>(std::min<uint64_t>(kChunkBytes, total - done));
    if (done < kept) std::memcpy(to + done, chunks_ + consumed_ % kChunks * kChunkBytes, std::min(n, kept - done));
    done += n;
    advance(header_.consumed, ++consumed_, header_.producer_sleeps);
  } while (done < total);
  broken_ = false;
}

void LaneReceiver::receive(uint32_t tag, absl::Span<char> bytes, Problem problem) {
  const auto check_size = [&](uint64_t sent) {
    check(sent == bytes.size(), "receive from rank ", peer_, " with tag ", tag, ": expected ", bytes.size(),
          " bytes, got a message of ", sent);
  };
  if (auto stored = reordered_.find(tag); stored != reordered_.end()) {
    const std::vector<char> message = std::move(stored->second.front());
    stored->second.pop_front();
    if (stored->second.empty()) reordered_.erase(stored);
    reordered_bytes_ -= message.size() + kMessageOverhead;
    check_size(message.size());
    std::copy(message.begin(), message.end(), bytes.data());
    return;
  }
  check(!broken_, "receive from rank ", peer_, ": an earlier receive was interrupted in the middle of its message");
  for (;;) {
    wait_for_chunk(problem);
    if (next_tag() != tag) {
      store_message(tag, problem);
      continue;
    }
    const uint64_t size = header_.messages[consumed_ % kChunks].bytes.load(std::memory_order_relaxed);
    if (size != bytes.size()) read(nullptr, 0, size, problem);
    check_size(size);
    return read(bytes.data(), bytes.size(), bytes.size(), problem);
  }
}

bool LaneReceiver::await_message(uint32_t tag, const std::atomic<bool>& stop, Problem problem) {
  if (reordered_.contains(tag)) return true;
  check(!broken_, "receive from rank ", peer_, ": an earlier receive was interrupted in the middle of its message");
  const auto has_chunk = [&] { return header_.produced.load(std::memory_order_seq_cst) != consumed_; };
  const auto is_ready = [&] { return has_chunk() || stop.load(std::memory_order_seq_cst); };
  for (;;) {
    if (auto text = wait(header_.produced, header_.consumer_sleeps, spin_, is_ready, problem)) {
      fail(ErrorKind::kRuntime, *text);
    }
    if (stop.load(std::memory_order_seq_cst)) return false;
    if (next_tag() == tag) return true;
    store_message(tag, problem);
  }
}

uint32_t LaneReceiver::next_tag() const {
  return header_.messages[consumed_ % kChunks].tag.load(std::memory_order_relaxed);
}

void LaneReceiver::store_message(uint32_t tag, Problem problem) {
  const uint64_t size = header_.messages[consumed_ % kChunks].bytes.load(std::memory_order_relaxed);
  const uint32_t its_tag = next_tag();
  const size_t left = kMaxReordered - reordered_bytes_;
  check(left >= kMessageOverhead && size <= left - kMessageOverhead, "receive from rank ", peer_, " with tag ", tag,
        ": the message is preceded by more than ", kMaxReordered >> 20,
        " MiB of messages with other tags; the next one has tag ", its_tag, " and ", size, " bytes");
  std::vector<char> stored(size);
  read(stored.data(), stored.size(), stored.size(), problem);
  reordered_[its_tag].push_back(std::move(stored));
  reordered_bytes_ += size + kMessageOverhead;
}

}  // namespace tt::distributed::shm
