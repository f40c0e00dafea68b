// Collective: one rank's part of a collective operation, over contiguous memory of the CPU. Backend: executes it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "engine/schema/dtype.h"

namespace tt::distributed {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kGather,
  kScatter,
  kReduceScatter,
  kAllToAll,
  kBarrier,
};
std::string_view name(CollectiveKind kind);  // "all_reduce"

// PyTorch's ReduceOp. The average and the factor of premul_sum are applied by the caller, so that backends know only
// these.
enum class ReduceOp : uint8_t { kSum, kProduct, kMin, kMax, kBand, kBor, kBxor };

// `count` is the number of items in the piece of one rank; pieces are in the order of ranks.
//
//   kind            input                      output
//   all_reduce      count                      count
//   reduce          count                      count, at the root only
//   broadcast       count, at the root only    count
//   all_gather      count                      size * count
//   gather          count                      size * count, at the root only
//   scatter         size * count, at the root  count
//   reduce_scatter  size * count               count
//   all_to_all      the sum of send_counts     the sum of receive_counts
//   barrier         -                          -
//
// Input and output do not overlap, except that all_reduce, reduce and broadcast may have the same address for both.
// Reductions give the same bits on all ranks.
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kFloat32;
  int root = 0;
  size_t count = 0;
  std::vector<size_t> send_counts{};     // all_to_all: items for each rank
  std::vector<size_t> receive_counts{};  // all_to_all: items from each rank
  const char* input = nullptr;
  char* output = nullptr;
};

// Moves bytes between the ranks of one group. One thread at a time calls exchange() and run(), in the same order with
// matching arguments on every rank. One thread per peer and direction calls send() and receive(), concurrently with the
// others. Functions block, and throw Error (RuntimeError) that names the ranks that did not arrive within the timeout,
// or the reason of abort(). After an error the backend is unusable, except that send() and receive() fail alone.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "gloo"
  // Sends `mine` to all ranks and receives theirs: `all` has size() times the bytes of `mine`, at most kMaxExchange.
  static constexpr size_t kMaxExchange = 512;
  virtual void exchange(absl::Span<const char> mine, absl::Span<char> all) = 0;
  virtual void run(const Collective& collective) = 0;
  // Messages between two ranks with the same tag arrive in the order in which they were sent. The receiver's size must
  // be the sender's.
  virtual void send(int peer, uint32_t tag, absl::Span<const char> bytes) = 0;
  virtual void receive(int peer, uint32_t tag, absl::Span<char> bytes) = 0;
  // Waits until the next message from `peer` with this tag, of `size` bytes, can be received, and returns true; or
  // returns false after `stop` became true and wake(peer) was called, or soon after. Called and fails like receive().
  // The next receive() with this peer and tag must have the same size.
  virtual bool await_message(int peer, uint32_t tag, size_t size, const std::atomic<bool>& stop) = 0;
  // Makes await_message() check `stop` now. Any thread may call it.
  virtual void wake(int peer) = 0;
  // Makes blocked and later functions throw. Any thread may call it. The first reason is kept.
  virtual void abort(std::string_view reason) = 0;
};

}  // namespace tt::distributed
