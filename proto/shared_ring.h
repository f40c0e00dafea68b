// The memory segment shared by an engine and a client on one host, and the protocol for bulk transfers through it.
//
// A segment is a header, two lanes, one per direction, and the two pipes of a stream (message_pipe.h). A lane is a ring
// of chunks with one producer and one consumer at a time. Every chunk of a transfer except the last is full; the
// transfer's RPC gives its size. The counters continue from transfer to transfer for the lifetime of the segment. An
// abandoned transfer makes its lane unusable (both sides see the RPC fail); a new Hello creates a new segment.
//
// Either side may be hostile or die at any time. Therefore each side reads only data bytes and the other side's
// counters, and checks these counters against its own. A waiting thread calls `should_continue` every kPollInterval to
// learn whether to continue waiting.
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace tt::shared_ring {

inline constexpr size_t kChunkBytes = size_t{256} << 10;
inline constexpr uint32_t kChunks = 32;  // a power of two, because the counters wrap
// Identifies the layout. Segments with another value are rejected.
inline constexpr uint32_t kLayout = 2u << 24 | kChunks << 16 | static_cast<uint32_t>(kChunkBytes >> 10);
inline constexpr size_t kHeaderBytes = 4096;
inline constexpr size_t kLaneBytes = kChunks * kChunkBytes;
inline constexpr uint32_t kPipeBytes = 512u << 10;  // a power of two, because the positions wrap
inline constexpr size_t kSegmentBytes = kHeaderBytes + 2 * kLaneBytes + 2 * kPipeBytes;

inline constexpr std::chrono::microseconds kSpin{30};  // an idle core takes about 20 us to wake
inline constexpr std::chrono::milliseconds kPollInterval{10};

// A lane's chunk counters. Each side's counters are on separate cache lines.
struct LaneCounters {
  alignas(128) std::atomic<uint32_t> produced;
  std::atomic<uint32_t> consumer_sleeps;  // number of the consumer's sleeping threads
  alignas(128) std::atomic<uint32_t> consumed;
  std::atomic<uint32_t> producer_sleeps;
};

// The positions in a pipe: numbers of bytes written and read since the start.
struct PipeCounters {
  alignas(128) std::atomic<uint32_t> written;
  std::atomic<uint32_t> reader_sleeps;
  alignas(128) std::atomic<uint32_t> read;
  std::atomic<uint32_t> writer_sleeps;
};

struct Header {
  uint64_t nonce;
  uint32_t layout;
  LaneCounters upload;    // the client produces
  LaneCounters download;  // the engine produces
  PipeCounters frames;    // the client writes
  PipeCounters replies;   // the engine writes
};
static_assert(sizeof(Header) <= kHeaderBytes && std::atomic<uint32_t>::is_always_lock_free);

// A mapping of a segment. Owns the mapping and the descriptor. Access the lanes through LaneEnd.
class Segment {
 public:
  // Takes ownership of `descriptor`. Returns null if it cannot be mapped.
  static std::unique_ptr<Segment> map(int descriptor) {
    void* base = mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED) {
      close(descriptor);
      return nullptr;
    }
    return std::unique_ptr<Segment>(new Segment(static_cast<char*>(base), descriptor));
  }

  // Client side: opens the segment described by HelloReply.shared_memory and locks its presence lock. Returns null if
  // the segment is not accessible or not the engine's (another host, another container): then bytes are sent over gRPC.
  static std::unique_ptr<Segment> open(int64_t pid, int32_t descriptor, uint64_t bytes, uint64_t nonce) {
    if (bytes != kSegmentBytes) return nullptr;
    std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
    int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return nullptr;
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) != kSegmentBytes) {
      close(fd);
      return nullptr;
    }
    std::unique_ptr<Segment> segment = map(fd);
    if (!segment || segment->header().nonce != nonce || segment->header().layout != kLayout) return nullptr;
    struct flock lock = presence();
    if (fcntl(fd, F_OFD_SETLK, &lock) != 0) return nullptr;
    return segment;
  }

  ~Segment() {
    munmap(base_, kSegmentBytes);
    close(descriptor_);
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Engine side: whether a client holds the segment open. The kernel releases the lock when the last process with the
  // client's file description dies, for any reason.
  bool client_present() const {
    struct flock lock = presence();
    return fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
  }

  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  char* upload_chunks() const { return base_ + kHeaderBytes; }
  char* download_chunks() const { return base_ + kHeaderBytes + kLaneBytes; }
  char* frame_bytes() const { return base_ + kHeaderBytes + 2 * kLaneBytes; }
  char* reply_bytes() const { return frame_bytes() + kPipeBytes; }
  int descriptor() const { return descriptor_; }

 private:
  Segment(char* base, int descriptor) : base_(base), descriptor_(descriptor) {}
  static struct flock presence() {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    return lock;
  }

  char* base_;
  int descriptor_;
};

// The result of a wait.
enum class Outcome {
  kReady,
  kStopped,  // should_continue() returned false
  kCorrupt,  // the other side's counter is invalid
};

namespace internal {

// A thread sleeps on the counter with the bit of the chunk that it waits for. A wake-up has one bit per passed chunk.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t seen, uint32_t bits,
                       std::chrono::nanoseconds most = kPollInterval) {
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t nanoseconds = until.tv_nsec + most.count();
  until.tv_sec += nanoseconds / 1'000'000'000;
  until.tv_nsec = nanoseconds % 1'000'000'000;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_BITSET, seen, &until, nullptr, bits);
}
inline void futex_wake(std::atomic<uint32_t>& word, uint32_t bits) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, bits);
}
// Returns the bits of the `count` chunks from `number` on.
inline uint32_t bits_of(uint32_t number, uint32_t count) {
  static_assert(kChunks == 32);
  return std::rotl(count < kChunks ? (1u << count) - 1 : ~0u, static_cast<int>(number % kChunks));
}
#if defined(__x86_64__)
inline void pause() { __builtin_ia32_pause(); }
#else
inline void pause() { std::this_thread::yield(); }
#endif

// Waits until `enough(counter)` returns true. Spins first, then sleeps until a chunk in `bits` is passed. `sleeps`
// counts the sleeping threads, so that the other side wakes them. Returns false if `should_continue` returned false.
template <typename Enough, typename ShouldContinue>
bool wait(std::atomic<uint32_t>& counter, std::atomic<uint32_t>& sleeps, uint32_t bits, Enough&& enough,
          ShouldContinue&& should_continue) {
  auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (enough(counter.load(std::memory_order_acquire))) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  for (;;) {
    sleeps.fetch_add(1, std::memory_order_seq_cst);
    uint32_t seen = counter.load(std::memory_order_seq_cst);
    bool ready = enough(seen);
    if (!ready) futex_wait(counter, seen, bits);
    sleeps.fetch_sub(1, std::memory_order_relaxed);
    if (ready || enough(counter.load(std::memory_order_acquire))) return true;
    if (!should_continue()) return false;
  }
}

// Advances `counter` from `from` by `count` and wakes sleeping threads.
inline void advance(std::atomic<uint32_t>& counter, uint32_t from, uint32_t count, std::atomic<uint32_t>& sleeps) {
  counter.store(from + count, std::memory_order_seq_cst);
  if (sleeps.load(std::memory_order_seq_cst) != 0) futex_wake(counter, bits_of(from, count));
}

}  // namespace internal

// One side's end of a lane. Chunks are numbered consecutively across transfers. A chunk is available to the producer
// when it is empty and to the consumer when it is full. Each side passes its chunks to the other side in order, after
// filling or emptying them. Several threads, or a device, may use several chunks before the first of them is passed.
// Any thread may query and wait; only one thread at a time may call pass(). The count of passed chunks is kept across
// transfers, for the lifetime of the segment.
class LaneEnd {
 public:
  static LaneEnd producer(LaneCounters& lane, char* chunks) {
    return {lane.consumed, lane.producer_sleeps, lane.produced, lane.consumer_sleeps, kChunks, chunks};
  }
  static LaneEnd consumer(LaneCounters& lane, char* chunks) {
    return {lane.produced, lane.consumer_sleeps, lane.consumed, lane.producer_sleeps, 0, chunks};
  }

  // Number of chunks passed by this side, which is the number of the next transfer's first chunk.
  uint32_t passed() const { return passed_.load(std::memory_order_acquire); }
  // For a consumer, a hostile producer may change the bytes at any time: copy them before inspecting them.
  char* chunk(uint32_t number) const { return chunks_ + (number % kChunks) * kChunkBytes; }

  // Waits until chunk `number` is available. `number` must be close to passed(), because the counters wrap. Each
  // waiting thread calls `should_continue()` every kPollInterval.
  template <typename ShouldContinue>
  Outcome await(uint32_t number, ShouldContinue&& should_continue) const {
    auto there = [&](uint32_t theirs) { return static_cast<int32_t>(theirs + ahead_ - number) > 0; };
    const uint32_t bits = internal::bits_of(number, 1);
    if (!internal::wait(theirs_, our_sleeps_, bits, there, should_continue)) return Outcome::kStopped;
    uint32_t count;
    return ready(number, &count);
  }
  // Sets `count` to the number of contiguous chunks available from `number` on, possibly 0. Returns kReady or kCorrupt.
  Outcome ready(uint32_t number, uint32_t* count) const {
    const uint32_t from = passed();  // read before and after theirs_, because another thread may pass chunks
    const uint32_t reach = theirs_.load(std::memory_order_acquire) + ahead_;
    const uint32_t most = passed() + kChunks;
    if (static_cast<int32_t>(reach - from) < 0 || static_cast<int32_t>(most - reach) < 0) return Outcome::kCorrupt;
    const uint32_t there = static_cast<int32_t>(reach - number) > 0 ? reach - number : 0;
    *count = std::min(there, kChunks - number % kChunks);
    return Outcome::kReady;
  }
  // Passes the next `count` chunks to the other side.
  void pass(uint32_t count) {
    const uint32_t from = passed();
    passed_.store(from + count, std::memory_order_release);
    internal::advance(ours_, from, count, their_sleeps_);
  }

 private:
  LaneEnd(std::atomic<uint32_t>& theirs, std::atomic<uint32_t>& our_sleeps, std::atomic<uint32_t>& ours,
          std::atomic<uint32_t>& their_sleeps, uint32_t ahead, char* chunks)
      : theirs_(theirs),
        our_sleeps_(our_sleeps),
        ours_(ours),
        their_sleeps_(their_sleeps),
        ahead_(ahead),
        chunks_(chunks) {}

  std::atomic<uint32_t>& theirs_;
  std::atomic<uint32_t>& our_sleeps_;
  std::atomic<uint32_t>& ours_;
  std::atomic<uint32_t>& their_sleeps_;
  const uint32_t ahead_;  // added to theirs_ to get the end of the chunks available to this side
  char* const chunks_;
  std::atomic<uint32_t> passed_{0};
};

}  // namespace tt::shared_ring
