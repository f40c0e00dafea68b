// A pipe for messages in the memory that an engine and a client on one host share (shared_ring.h): one direction of a
// session's stream.
//
// A ring of kPipeBytes bytes with one writer and one reader. A message is its size, 4 bytes in this host's order, and
// its bytes; it may be longer than the ring. Either side may be hostile or die at any time: each side keeps its own
// position, checks the other side's, and copies bytes before it inspects them. Each object is used by one thread,
// except wake().
//
// A wait sleeps on the other side's position. A wait for an answer spins before, for a moment, where that has paid off
// lately (Spin). Before each sleep `next_sleep` is called, which returns the longest duration of the sleep, or nothing
// to end the wait.
#pragma once

#include <cstring>
#include <optional>

#include "absl/strings/string_view.h"
#include "proto/shared_ring.h"

namespace tt::shared_ring {

// Whether and how long a wait spins. Waking a sleeping thread takes longer than the answer to a small frame, but a
// thread that spins on a host without a free core delays the answer.
class Spin {
 public:
  // Calls `done` until it returns true; returns false after kSpin, or at once if most of the last spins were in vain.
  template <typename Done>
  bool until(Done&& done) {
    static const bool has_cores = std::thread::hardware_concurrency() > 1;
    if (!has_cores || (in_vain_ >= kMaxInVain && ++skipped_ % kRetry != 0)) return false;
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 32; ++i) {
        if (done()) {
          in_vain_ = 0;
          return true;
        }
        internal::pause();
      }
    } while (std::chrono::steady_clock::now() < deadline);
    if (in_vain_ < kMaxInVain) ++in_vain_;
    return false;
  }

 private:
  static constexpr std::chrono::microseconds kSpin{50};
  static constexpr int kMaxInVain = 3;
  static constexpr uint32_t kRetry = 16;  // one wait of this many spins to find out whether it pays off again
  int in_vain_ = 0;
  uint32_t skipped_ = 0;
};

namespace internal {

template <typename Enough, typename NextSleep>
bool await_position(std::atomic<uint32_t>& theirs, std::atomic<uint32_t>& our_sleeps, Spin* spin, Enough&& enough,
                    NextSleep&& next_sleep) {
  auto is_there = [&] { return enough(theirs.load(std::memory_order_acquire)); };
  if (is_there()) return true;
  std::optional<std::chrono::nanoseconds> time = next_sleep();
  if (!time) return false;
  if (spin != nullptr && spin->until(is_there)) return true;
  while (time) {
    our_sleeps.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = theirs.load(std::memory_order_seq_cst);
    const bool ready = enough(seen);
    if (!ready) futex_wait(theirs, seen, ~0u, *time);
    our_sleeps.fetch_sub(1, std::memory_order_relaxed);
    if (ready || is_there()) return true;
    time = next_sleep();
  }
  return false;
}

inline void publish(std::atomic<uint32_t>& ours, uint32_t position, std::atomic<uint32_t>& their_sleeps) {
  ours.store(position, std::memory_order_seq_cst);
  if (their_sleeps.load(std::memory_order_seq_cst) != 0) futex_wake(ours, ~0u);
}

}  // namespace internal

class PipeWriter {
 public:
  PipeWriter(PipeCounters& counters, char* bytes) : counters_(counters), bytes_(bytes) {}

  // Waits until the ring has room for `bytes` bytes, at most kPipeBytes.
  template <typename NextSleep>
  Outcome await_room(uint32_t bytes, NextSleep&& next_sleep) {
    auto enough = [&](uint32_t read) { return used(read) > kPipeBytes || kPipeBytes - used(read) >= bytes; };
    if (!internal::await_position(counters_.read, counters_.writer_sleeps, nullptr, enough, next_sleep)) {
      return Outcome::kStopped;
    }
    return used(counters_.read.load(std::memory_order_acquire)) > kPipeBytes ? Outcome::kCorrupt : Outcome::kReady;
  }
  // Writes a message, in parts if it is longer than the room. After any other outcome than kReady the pipe must not be
  // used.
  template <typename NextSleep>
  Outcome write(absl::string_view message, NextSleep&& next_sleep) {
    const auto size = static_cast<uint32_t>(message.size());
    Outcome outcome = put({reinterpret_cast<const char*>(&size), sizeof size}, next_sleep);
    if (outcome == Outcome::kReady) outcome = put(message, next_sleep);
    if (outcome == Outcome::kReady) internal::publish(counters_.written, written_, counters_.reader_sleeps);
    return outcome;
  }
  // Wakes a thread that sleeps in this object, so that it calls `next_sleep`. Any thread.
  void wake() { internal::futex_wake(counters_.read, ~0u); }

 private:
  uint32_t used(uint32_t read) const { return written_ - read; }

  template <typename NextSleep>
  Outcome put(absl::string_view part, NextSleep&& next_sleep) {
    while (!part.empty()) {
      uint32_t in_use = used(counters_.read.load(std::memory_order_acquire));
      if (in_use >= kPipeBytes) {
        // The reader must see what was written, to make room.
        internal::publish(counters_.written, written_, counters_.reader_sleeps);
        if (const Outcome outcome = await_room(1, next_sleep); outcome != Outcome::kReady) return outcome;
        in_use = used(counters_.read.load(std::memory_order_acquire));
        if (in_use >= kPipeBytes) return Outcome::kCorrupt;
      }
      const uint32_t at = written_ % kPipeBytes;
      const size_t size = std::min<size_t>({part.size(), kPipeBytes - in_use, kPipeBytes - at});
      std::memcpy(bytes_ + at, part.data(), size);
      part.remove_prefix(size);
      written_ += static_cast<uint32_t>(size);
    }
    return Outcome::kReady;
  }

  PipeCounters& counters_;
  char* const bytes_;
  uint32_t written_ = 0;
};

class PipeReader {
 public:
  PipeReader(PipeCounters& counters, const char* bytes) : counters_(counters), bytes_(bytes) {}

  // Waits for the next message and stores its size. kCorrupt if the writer's position is invalid. Call it once per
  // message, then read(). With `spins`, the message is expected within moments, and the other side waits for it too.
  template <typename NextSleep>
  Outcome await(uint32_t* size, bool spins, NextSleep&& next_sleep) {
    const Outcome outcome = await_bytes(sizeof *size, spins, next_sleep);
    if (outcome == Outcome::kReady) take(reinterpret_cast<char*>(size), sizeof *size);
    return outcome;
  }
  // Copies the message, whose size is await()'s.
  template <typename NextSleep>
  Outcome read(char* into, uint32_t size, NextSleep&& next_sleep) {
    for (;;) {
      const uint32_t part = std::min(size, counters_.written.load(std::memory_order_acquire) - read_);
      if (part > kPipeBytes) return Outcome::kCorrupt;
      take(into, part);
      internal::publish(counters_.read, read_, counters_.writer_sleeps);
      into += part;
      size -= part;
      if (size == 0) return Outcome::kReady;
      if (const Outcome outcome = await_bytes(1, true, next_sleep); outcome != Outcome::kReady) return outcome;
    }
  }

  // As PipeWriter's.
  void wake() { internal::futex_wake(counters_.written, ~0u); }

 private:
  template <typename NextSleep>
  Outcome await_bytes(uint32_t count, bool spins, NextSleep&& next_sleep) {
    auto enough = [&](uint32_t written) { return written - read_ >= count; };
    if (!internal::await_position(counters_.written, counters_.reader_sleeps, spins ? &spin_ : nullptr, enough,
                                  next_sleep)) {
      return Outcome::kStopped;
    }
    return counters_.written.load(std::memory_order_acquire) - read_ > kPipeBytes ? Outcome::kCorrupt : Outcome::kReady;
  }
  // Requires `size` available bytes.
  void take(char* into, uint32_t size) {
    const uint32_t at = read_ % kPipeBytes, first = std::min(size, kPipeBytes - at);
    std::memcpy(into, bytes_ + at, first);
    std::memcpy(into + first, bytes_, size - first);
    read_ += size;
  }

  PipeCounters& counters_;
  const char* const bytes_;
  uint32_t read_ = 0;
  Spin spin_;
};

}  // namespace tt::shared_ring
