// Segment: the memory shared by the ranks of one group on one host, and waiting in it.
//
// Rank 0 creates the segment under a random name and the other ranks open it. The last one removes the name: from then
// on the kernel frees the memory when the last rank ends, for whatever reason. A rank locks one byte of the file
// for its lifetime, so that the others notice its death. The lock belongs to the descriptor: a child that the process
// forks without exec keeps it.
//
// Peers can write all of the memory. Therefore only local sizes decide what is read or written; the peers' counters
// only decide for how long a rank waits. Peers have the same user, who could also truncate the file.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace tt::distributed::shm {

inline constexpr int kMaxRanks = 64;
// A rank has two slots, used in turn by the rounds of collectives.
inline constexpr size_t kSlotBytes = size_t{1} << 19;
// A lane carries the messages from one rank to another, in chunks.
inline constexpr size_t kChunkBytes = size_t{128} << 10;
inline constexpr uint32_t kChunks = 8;  // a power of two, because the counters wrap

inline constexpr std::chrono::microseconds kSpin{20};
inline constexpr std::chrono::milliseconds kPollInterval{20};  // how soon a dead peer or abort() is noticed

enum class RankState : uint32_t { kAbsent, kJoined, kLeft, kFailed };

// Written by one rank, read by all.
struct RankHeader {
  alignas(128) std::atomic<uint32_t> arrived;  // number of the last barrier that the rank entered
  std::atomic<uint64_t> rounds[2];             // all_to_all: the number of rounds that the rank needs, per slot
  alignas(128) std::atomic<RankState> state;
  std::atomic<uint32_t> reason_bytes;  // of the failure; valid in state kFailed
  char reason[240];
};

struct LaneHeader {
  alignas(128) std::atomic<uint32_t> produced;
  std::atomic<uint32_t> consumer_sleeps;  // number of the consumer's sleeping threads
  alignas(128) std::atomic<uint32_t> consumed;
  std::atomic<uint32_t> producer_sleeps;
  struct Message {
    std::atomic<uint64_t> bytes;
    std::atomic<uint32_t> tag;
  } messages[kChunks];  // of the message whose first chunk is in the same place
};

struct SegmentHeader {
  uint64_t magic;
  uint64_t nonce;
  uint64_t layout[4];
  std::atomic<uint32_t> joined;                 // number of ranks that have opened the segment
  alignas(128) std::atomic<uint32_t> barriers;  // changes when a barrier that has sleeping ranks is complete
  std::atomic<uint32_t> sleeps;                 // number of sleeping ranks
};
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

// Owns a rank's mapping, descriptor and lock. Thread-safe.
class Segment {
 public:
  // FAILED_PRECONDITION or RESOURCE_EXHAUSTED if the host has no shared memory, or not enough.
  static absl::StatusOr<std::unique_ptr<Segment>> create(int size);
  // `name` is the creator's. NOT_FOUND on another host; INVALID_ARGUMENT if the segment is not the creator's or has
  // another layout; ALREADY_EXISTS if the rank has been opened.
  static absl::StatusOr<std::unique_ptr<Segment>> open(const std::string& name, int rank, int size);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const std::string& name() const { return name_; }  // with the nonce, which open() checks
  int rank() const { return rank_; }
  int size() const { return size_; }

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  RankHeader& rank_header(int rank) const { return reinterpret_cast<RankHeader*>(base_ + kPage)[rank]; }
  char* slot(int rank, uint32_t round) const {
    return base_ + slots_ + (2 * static_cast<size_t>(rank) + round % 2) * kSlotBytes;
  }
  LaneHeader& lane_header(int from, int to) const {
    return reinterpret_cast<LaneHeader*>(base_ + lane_headers_)[from * size_ + to];
  }
  char* lane(int from, int to) const {
    return base_ + lanes_ + (static_cast<size_t>(from) * size_ + to) * kChunks * kChunkBytes;
  }
  // Allocates memory at an address in the segment, which is sparse otherwise. Returns false if the host's shared memory
  // is exhausted: then the memory must not be accessed.
  bool allocate(const char* address, size_t bytes) const;
  // Whether the process that opened the segment as `rank` lives and has not closed it.
  bool holds_lock(int rank) const;

 private:
  Segment(int rank, int size);
  absl::Status map();
  absl::Status lock_rank();
  void join();  // the last rank to call it removes the name
  std::string file() const { return name_.substr(0, name_.find(':')); }

  static constexpr size_t kPage = 4096;
  const int rank_, size_;
  // removes the name at the end, in case another rank ended before it joined
  bool removes_name_ = false;
  size_t lane_headers_, slots_, lanes_, bytes_;  // offsets, and the total
  std::string name_;
  FileDescriptor descriptor_;
  char* base_ = nullptr;
};

namespace internal {

inline void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  timespec duration{0, std::chrono::nanoseconds(kPollInterval).count()};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, seen, &duration, nullptr, 0);
}
inline void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
#if defined(__x86_64__)
inline void pause() { __builtin_ia32_pause(); }
#else
inline void pause() { std::this_thread::yield(); }
#endif

}  // namespace internal

// Waits until ready() returns true: spins for `spin`, then sleeps until `word` changes and its writer sees `sleeps`.
// Calls problem() every kPollInterval while it sleeps; returns its text, if it has one and ready() still returns false.
template <typename Ready, typename Problem>
std::optional<std::string> wait(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeps,
                                std::chrono::microseconds spin, Ready&& ready, Problem&& problem) {
  if (ready()) return std::nullopt;
  if (spin.count() > 0) {
    const auto deadline = std::chrono::steady_clock::now() + spin;
    do {
      for (int i = 0; i < 16; ++i) {
        if (ready()) return std::nullopt;
        internal::pause();
      }
    } while (std::chrono::steady_clock::now() < deadline);
  }
  for (;;) {
    sleeps.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = word.load(std::memory_order_seq_cst);
    const bool done = ready();
    if (!done) internal::futex_wait(word, seen);
    sleeps.fetch_sub(1, std::memory_order_relaxed);
    if (done || ready()) return std::nullopt;
    std::optional<std::string> text = problem();
    if (text && !ready()) return text;
  }
}

}  // namespace tt::distributed::shm
