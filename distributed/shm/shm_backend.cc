#include "distributed/shm/shm_backend.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "distributed/group/reduce.h"
#include "engine/schema/error.h"

namespace tt::distributed {
namespace {

using shm::kSlotBytes;
using shm::RankHeader;
using shm::RankState;

// Up to this many bytes, all ranks reduce everything after one barrier. Beyond, each rank reduces a part.
constexpr size_t kMaxWholeReduction = size_t{16} << 10;
constexpr size_t kCopyBlock = size_t{32} << 10;

void copy(char* to, const char* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// Bytes of a slot for each of `parts` parts: a multiple of a cache line, and therefore of all items.
size_t part_of_slot(int parts) { return kSlotBytes / static_cast<size_t>(parts) / 64 * 64; }

// A waiting rank spins only if each rank of the host can have a core.
std::chrono::microseconds spin_time(int ranks) {
  cpu_set_t cores;
  const bool enough = sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) >= ranks;
  return enough ? shm::kSpin : std::chrono::microseconds(0);
}

std::string ranks_text(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "));
}

// Runs body(offset, bytes) for each slice of `total` bytes.
template <typename Body>
void for_each_slice(size_t total, size_t slice, Body&& body) {
  for (size_t at = 0; at < total; at += slice) body(at, std::min(slice, total - at));
}

}  // namespace

ShmBackend::ShmBackend(std::unique_ptr<shm::Segment> segment, std::chrono::milliseconds timeout)
    : segment_(std::move(segment)),
      rank_(segment_->rank()),
      size_(segment_->size()),
      timeout_(timeout),
      spin_(spin_time(size_)) {
  for (int peer = 0; peer < size_; ++peer) {
    senders_.emplace_back(*segment_, peer, spin_);
    receivers_.emplace_back(*segment_, peer, spin_);
  }
}

absl::StatusOr<ShmBackend::Created> ShmBackend::create(int size, std::chrono::milliseconds timeout) {
  auto segment = shm::Segment::create(size);
  if (!segment.ok()) return segment.status();
  std::string name = (*segment)->name();
  return Created{std::unique_ptr<ShmBackend>(new ShmBackend(*std::move(segment), timeout)), std::move(name)};
}

absl::StatusOr<std::unique_ptr<ShmBackend>> ShmBackend::open(const std::string& name, int rank, int size,
                                                             std::chrono::milliseconds timeout) {
  auto segment = shm::Segment::open(name, rank, size);
  if (!segment.ok()) return segment.status();
  return std::unique_ptr<ShmBackend>(new ShmBackend(*std::move(segment), timeout));
}

ShmBackend::~ShmBackend() {
  RankState joined = RankState::kJoined;
  segment_->rank_header(rank_).state.compare_exchange_strong(joined, RankState::kLeft);
}

// Failures.

std::optional<std::string> ShmBackend::abort_reason() const {
  if (!aborted_.load(std::memory_order_acquire)) return std::nullopt;
  MutexLock lock(mutex_);
  return reason_;
}

void ShmBackend::publish_failure(std::string_view text) {
  MutexLock lock(mutex_);
  if (aborted_.load(std::memory_order_relaxed)) return;
  reason_ = text;
  RankHeader& mine = segment_->rank_header(rank_);
  const size_t n = std::min(text.size(), sizeof mine.reason);
  std::memcpy(mine.reason, text.data(), n);
  mine.reason_bytes.store(static_cast<uint32_t>(n), std::memory_order_relaxed);
  mine.state.store(RankState::kFailed, std::memory_order_release);
  aborted_.store(true, std::memory_order_release);
}

void ShmBackend::abort(std::string_view reason) { publish_failure(reason); }

void ShmBackend::fail_group(const std::string& text) {
  publish_failure(text);
  fail(ErrorKind::kRuntime, text);
}

std::optional<std::string> ShmBackend::failure_of(int peer) const {
  const RankHeader& header = segment_->rank_header(peer);
  switch (header.state.load(std::memory_order_acquire)) {
    case RankState::kAbsent: return std::nullopt;  // has not opened the segment
    case RankState::kJoined:
      if (segment_->holds_lock(peer)) return std::nullopt;
      return header.state.load(std::memory_order_acquire) == RankState::kLeft
                 ? absl::StrCat("rank ", peer, " left the group")
                 : absl::StrCat("rank ", peer, " exited");
    case RankState::kLeft: return absl::StrCat("rank ", peer, " left the group");
    case RankState::kFailed: break;
  }
  const size_t n = std::min<size_t>(header.reason_bytes.load(std::memory_order_relaxed), sizeof header.reason);
  std::string reason(header.reason, n);
  for (char& c : reason) {
    if (c < ' ' || c > '~') c = '?';
  }
  return reason;
}

void ShmBackend::barrier() {
  if (auto reason = abort_reason()) fail(ErrorKind::kRuntime, *reason);
  shm::SegmentHeader& header = segment_->header();
  const uint32_t round = ++round_;
  int next = 0;  // the ranks before it have arrived
  const auto all_arrived = [&] {
    for (; next < size_; ++next) {
      const uint32_t arrived = segment_->rank_header(next).arrived.load(std::memory_order_seq_cst);
      if (static_cast<int32_t>(arrived - round) < 0) return false;
    }
    return true;
  };
  segment_->rank_header(rank_).arrived.store(round, std::memory_order_seq_cst);
  if (all_arrived()) {  // the last rank wakes the others
    if (header.sleeps.load(std::memory_order_seq_cst) != 0) {
      header.barriers.fetch_add(1, std::memory_order_seq_cst);
      shm::internal::futex_wake(header.barriers);
    }
    return;
  }
  const Clock::time_point deadline = Clock::now() + timeout_;
  const auto problem = [&]() -> std::optional<std::string> {
    if (auto reason = abort_reason()) return reason;
    std::vector<int> missing;
    for (int r = next; r < size_; ++r) {
      const uint32_t arrived = segment_->rank_header(r).arrived.load(std::memory_order_seq_cst);
      if (static_cast<int32_t>(arrived - round) >= 0) continue;
      missing.push_back(r);
      if (auto failure = failure_of(r)) return failure;
    }
    if (Clock::now() < deadline || missing.empty()) return std::nullopt;
    return absl::StrCat("timed out after ", timeout_.count(), " ms: ", ranks_text(missing), " did not arrive");
  };
  if (auto text = shm::wait(header.barriers, header.sleeps, spin_, all_arrived, problem)) fail_group(*text);
}

// Collectives.

void ShmBackend::exchange(absl::Span<const char> mine, absl::Span<char> all) {
  check(mine.size() <= kMaxExchange && all.size() == mine.size() * static_cast<size_t>(size_),
        "exchange: expected an input of at most ", kMaxExchange, " bytes and an output of ", size_,
        " times its size, got ", mine.size(), " and ", all.size());
  copy(next_slot(), mine.data(), mine.size());
  barrier();
  for (int r = 0; r < size_; ++r) copy(all.data() + r * mine.size(), slot(r), mine.size());
}

void ShmBackend::run(const Collective& c) {
  const size_t bytes = c.count * item_size(c.dtype);
  switch (c.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce: check_reduction(c.op, c.dtype); return all_reduce(c, bytes);
    case CollectiveKind::kReduceScatter: check_reduction(c.op, c.dtype); return reduce_scatter(c, bytes);
    case CollectiveKind::kBroadcast: return broadcast(c, bytes);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kGather: return all_gather(c, bytes);
    case CollectiveKind::kScatter: return scatter(c, bytes);
    case CollectiveKind::kAllToAll: return all_to_all(c);
    case CollectiveKind::kBarrier: return barrier();
  }
}

void ShmBackend::all_reduce(const Collective& c, size_t bytes) {
  const bool has_output = c.kind == CollectiveKind::kAllReduce || rank_ == c.root;
  if (size_ == 1) return copy(c.output, c.input, bytes);
  if (bytes > kMaxWholeReduction) return reduce_parts(c, bytes);
  if (bytes == 0) return;
  copy(next_slot(), c.input, bytes);
  barrier();
  if (!has_output) return;
  std::vector<const char*> inputs(size_);
  for (int r = 0; r < size_; ++r) inputs[r] = slot(r);
  reduce(c.op, c.dtype, c.output, inputs, c.count);
}

// Each rank reduces its part of a chunk, from the slots of the others, and publishes the result in its own slot in the
// next round, together with the other ranks' parts of the next chunk.
void ShmBackend::reduce_parts(const Collective& c, size_t bytes) {
  const bool has_output = c.kind == CollectiveKind::kAllReduce || rank_ == c.root;
  const size_t stride = part_of_slot(size_), item = item_size(c.dtype);
  const size_t chunk = stride * size_, chunks = (bytes + chunk - 1) / chunk;
  struct Part {
    size_t begin, bytes;  // in the tensor
  };
  const auto part = [&](size_t index, int rank) -> Part {
    const size_t begin = index * chunk, total = std::min(chunk, bytes - begin);
    const size_t each = ((total + size_ - 1) / size_ + 63) / 64 * 64;
    const size_t from = std::min(total, rank * each), to = std::min(total, from + each);
    return {begin + from, to - from};
  };
  const auto publish = [&](size_t index) {
    for (int r = 0; r < size_; ++r) {
      const Part p = part(index, r);
      if (r != rank_) copy(next_slot() + r * stride, c.input + p.begin, p.bytes);
    }
  };
  const auto reduce_mine = [&](size_t index) {
    const Part mine = part(index, rank_);
    std::vector<const char*> inputs(size_);
    for_each_slice(mine.bytes, kCopyBlock, [&](size_t at, size_t n) {
      for (int r = 0; r < size_; ++r) {
        inputs[r] = r == rank_ ? c.input + mine.begin + at : slot(r) + rank_ * stride + at;
      }
      char* result = next_slot() + rank_ * stride + at;
      char* to = has_output ? c.output + mine.begin + at : result;
      reduce(c.op, c.dtype, to, inputs, n / item);
      copy(result, to, n);
    });
  };
  const auto collect = [&](size_t index) {
    if (!has_output) return;
    for (int r = 0; r < size_; ++r) {
      const Part p = part(index, r);
      if (r != rank_) copy(c.output + p.begin, slot(r) + r * stride, p.bytes);
    }
  };
  publish(0);
  for (size_t k = 0; k < chunks; ++k) {
    barrier();
    reduce_mine(k);
    if (k > 0) collect(k - 1);
    if (k + 1 < chunks) publish(k + 1);
  }
  barrier();
  collect(chunks - 1);
}

void ShmBackend::reduce_scatter(const Collective& c, size_t bytes) {
  if (size_ == 1) return copy(c.output, c.input, bytes);
  const size_t stride = part_of_slot(size_), item = item_size(c.dtype);
  std::vector<const char*> inputs(size_);
  for_each_slice(bytes, stride, [&](size_t at, size_t n) {
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) copy(next_slot() + r * stride, c.input + r * bytes + at, n);
    }
    barrier();
    for (int r = 0; r < size_; ++r) {
      inputs[r] = r == rank_ ? c.input + r * bytes + at : slot(r) + rank_ * stride;
    }
    reduce(c.op, c.dtype, c.output + at, inputs, n / item);
  });
}

void ShmBackend::broadcast(const Collective& c, size_t bytes) {
  if (rank_ == c.root) copy(c.output, c.input, bytes);
  if (size_ == 1) return;
  for_each_slice(bytes, kSlotBytes, [&](size_t at, size_t n) {
    if (rank_ == c.root) copy(next_slot(), c.input + at, n);
    barrier();
    if (rank_ != c.root) copy(c.output + at, slot(c.root), n);
  });
}

void ShmBackend::all_gather(const Collective& c, size_t bytes) {
  const bool has_output = c.kind == CollectiveKind::kAllGather || rank_ == c.root;
  const bool is_read = c.kind == CollectiveKind::kAllGather || rank_ != c.root;
  if (has_output) copy(c.output + rank_ * bytes, c.input, bytes);
  if (size_ == 1) return;
  for_each_slice(bytes, kSlotBytes, [&](size_t at, size_t n) {
    if (is_read) copy(next_slot(), c.input + at, n);
    barrier();
    if (!has_output) return;
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) copy(c.output + r * bytes + at, slot(r), n);
    }
  });
}

void ShmBackend::scatter(const Collective& c, size_t bytes) {
  if (rank_ == c.root) copy(c.output, c.input + rank_ * bytes, bytes);
  if (size_ == 1) return;
  const size_t stride = part_of_slot(size_);
  for_each_slice(bytes, stride, [&](size_t at, size_t n) {
    for (int r = 0; r < size_ && rank_ == c.root; ++r) {
      if (r != rank_) copy(next_slot() + r * stride, c.input + r * bytes + at, n);
    }
    barrier();
    if (rank_ != c.root) copy(c.output + at, slot(c.root) + rank_ * stride, n);
  });
}

// The number of rounds depends on the largest message of all ranks, which they publish in the first round.
void ShmBackend::all_to_all(const Collective& c) {
  const size_t stride = part_of_slot(size_), item = item_size(c.dtype);
  struct Piece {
    size_t begin, bytes;
  };
  std::vector<Piece> sent(size_), received(size_);
  size_t in = 0, out = 0;
  uint64_t rounds = 1;
  for (int r = 0; r < size_; ++r) {
    sent[r] = {in, c.send_counts[r] * item};
    received[r] = {out, c.receive_counts[r] * item};
    in += sent[r].bytes;
    out += received[r].bytes;
    if (r != rank_) rounds = std::max<uint64_t>(rounds, (sent[r].bytes + stride - 1) / stride);
  }
  check(sent[rank_].bytes == received[rank_].bytes, "all_to_all: rank ", rank_, " sends ", c.send_counts[rank_],
        " items to itself and receives ", c.receive_counts[rank_]);
  copy(c.output + received[rank_].begin, c.input + sent[rank_].begin, sent[rank_].bytes);
  if (size_ == 1) return;
  segment_->rank_header(rank_).rounds[(round_ + 1) % 2].store(rounds, std::memory_order_relaxed);
  for (uint64_t round = 0; round < rounds; ++round) {
    const size_t at = round * stride;
    const auto slice = [&](const Piece& piece) { return at < piece.bytes ? std::min(stride, piece.bytes - at) : 0; };
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) copy(next_slot() + r * stride, c.input + sent[r].begin + at, slice(sent[r]));
    }
    barrier();
    if (round == 0) {
      for (int r = 0; r < size_; ++r) {
        rounds = std::max(rounds, segment_->rank_header(r).rounds[round_ % 2].load(std::memory_order_relaxed));
      }
    }
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) copy(c.output + received[r].begin + at, slot(r) + rank_ * stride, slice(received[r]));
    }
  }
}

// Messages.

void ShmBackend::with_peer(int peer, std::string_view missing, absl::FunctionRef<void(shm::Problem)> body) {
  check(peer >= 0 && peer < size_ && peer != rank_, "expected another rank of ", size_, ", got rank ", peer);
  if (auto reason = abort_reason()) fail(ErrorKind::kRuntime, *reason);
  const Clock::time_point deadline = Clock::now() + timeout_;
  body([&]() -> std::optional<std::string> {
    if (auto reason = abort_reason()) return reason;
    if (auto failure = failure_of(peer)) return failure;
    if (Clock::now() < deadline) return std::nullopt;
    return absl::StrCat("timed out after ", timeout_.count(), " ms: rank ", peer, " did not ",
                        absl::string_view(missing.data(), missing.size()));
  });
}

void ShmBackend::send(int peer, uint32_t tag, absl::Span<const char> bytes) {
  with_peer(peer, "receive", [&](shm::Problem problem) { senders_[peer].send(tag, bytes, problem); });
}

bool ShmBackend::await_message(int peer, uint32_t tag, size_t, const std::atomic<bool>& stop) {
  bool arrived = false;
  with_peer(peer, "send",
            [&](shm::Problem problem) { arrived = receivers_[peer].await_message(tag, stop, problem); });
  return arrived;
}

void ShmBackend::wake(int peer) { receivers_[peer].wake(); }

void ShmBackend::receive(int peer, uint32_t tag, absl::Span<char> bytes) {
  with_peer(peer, "send", [&](shm::Problem problem) { receivers_[peer].receive(tag, bytes, problem); });
}

}  // namespace tt::distributed
