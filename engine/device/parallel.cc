#include "engine/device/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <utility>

#include "base/mutex.h"
#include "engine/device/cancellation.h"
#include "engine/device/fair_queue.h"
#include "engine/device/pool_threads.h"

namespace tt {
namespace {

// Read before main(): a PoolLease changes what OpenMP returns on its thread.
std::atomic<int> width_setting{omp_get_max_threads()};
thread_local int thread_limit = 0;

// At most one thread holds the pool; it may acquire the pool recursively.
std::atomic<bool> pool_taken{false};
thread_local int leases = 0;

bool take_pool() {
  if (leases > 0) return true;
  if (const Turn* const turn = Turn::current(); turn != nullptr && !turn->may_widen()) return false;
  return !pool_taken.load(std::memory_order_relaxed) && !pool_taken.exchange(true, std::memory_order_acquire);
}

using Body = absl::FunctionRef<void(int64_t, int64_t)>;

// A piece is run in blocks, with a check of the session's cancellation between blocks. A piece of a few grains is one
// block. In longer pieces the block size is adjusted so that a block takes between kShortBlock and kLongBlock. Checks
// and a body's set-up per block then cost little, and a request takes effect soon if the loop's items are short.
constexpr int64_t kFirstGrains = 16;
constexpr std::chrono::milliseconds kShortBlock{5}, kLongBlock{40};

// Runs body over [begin, end). Returns false if `cancellation` (may be null) was requested; the body may then have
// returned early.
bool run_blocks(int64_t begin, int64_t end, int64_t grain, Body body, const Cancellation* cancellation) {
  if (cancellation == nullptr) return body(begin, end), true;
  if (cancellation->requested()) return false;
  grain = std::max<int64_t>(grain, 1);
  int64_t block = grain < std::numeric_limits<int64_t>::max() / kFirstGrains ? grain * kFirstGrains : grain;
  if (end - begin <= block) return body(begin, end), !cancellation->requested();
  auto since = Cancellation::Clock::now();
  for (int64_t at = begin; at < end;) {
    const int64_t next = end - at <= block + grain ? end : at + block;  // the last block is not smaller than a grain
    body(at, next);
    at = next;
    if (cancellation->requested()) return false;
    if (Turn* const turn = Turn::current()) turn->offer();
    const auto until = Cancellation::Clock::now();
    if (until - since < kShortBlock && block <= end - begin) block *= 2;
    if (until - since > kLongBlock) block = std::max(block / 2, grain);
    since = until;
  }
  return true;
}

// The loop that the pool runs, written by the thread that holds the pool.
struct Job {
  int64_t n;
  int64_t grain;
  const Body* body;
  Cancellation* cancellation;
  std::atomic<bool> left{false};  // stopped early
  Mutex thrown_mutex;
  std::exception_ptr thrown ABSL_GUARDED_BY(thrown_mutex);  // exception of the first body that threw
  std::atomic<int> edge{0};
};
Job job;

// No exception may leave a parallel region: the first one is stored for the caller of parallel_for.
void run_piece(int64_t piece, int64_t pieces) {
  job.edge.load(std::memory_order_acquire);
  const CancellationScope scope(job.cancellation);
  try {
    const int64_t begin = job.n * piece / pieces, end = job.n * (piece + 1) / pieces;
    if (!run_blocks(begin, end, job.grain, *job.body, job.cancellation)) job.left.store(true);
  } catch (...) {
    const MutexLock lock(job.thrown_mutex);
    if (!job.thrown) job.thrown = std::current_exception();
  }
  job.edge.fetch_add(1, std::memory_order_acq_rel);
}

void run_alone(int64_t n, int64_t grain, Body body) {
  Cancellation* cancellation = Cancellation::current();
  if (!run_blocks(0, n, grain, body, cancellation)) throw Cancelled(*cancellation);
}

}  // namespace

int num_threads() {
  const int n = width_setting.load(std::memory_order_relaxed);
  return thread_limit == 0 ? n : std::min(n, thread_limit);
}

int set_thread_limit(int limit) { return std::exchange(thread_limit, limit); }

void set_num_threads(int n) { width_setting.store(std::max(n, 1), std::memory_order_relaxed); }

void release_pool_threads() { omp_pause_resource_all(omp_pause_soft); }

bool holds_pool() { return leases > 0; }

PoolLease::PoolLease(int max_threads)
    : held_(max_threads > 1 && take_pool()),
      width_(held_ ? std::min(num_threads(), max_threads) : 1),
      before_(omp_get_max_threads()) {
  if (held_ && leases++ == 0 && Turn::current() != nullptr) {
    is_charged_ = true;
    since_ = FairQueue::Clock::now();
  }
  // Libraries read this OpenMP setting of the calling thread: it is the number of threads of their parallel loops.
  omp_set_num_threads(width_);
}

PoolLease::~PoolLease() {
  omp_set_num_threads(before_);
  if (!held_ || --leases != 0) return;
  pool_taken.store(false, std::memory_order_release);
  if (!is_charged_) return;
  if (Turn* const turn = Turn::current()) turn->add((width_ - 1) * (FairQueue::Clock::now() - since_));
}

void parallel_for(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  if (omp_in_parallel()) return body(0, n);  // the outer loop checks for cancellation
  int64_t pieces = std::min<int64_t>(num_threads(), grain > 0 ? n / grain : n);
  if (pieces <= 1) return run_alone(n, grain, body);
  PoolLease lease;
  pieces = std::min<int64_t>(pieces, lease.width());
  if (pieces <= 1) return run_alone(n, grain, body);
  job.n = n;
  job.grain = grain;
  job.body = &body;
  job.cancellation = Cancellation::current();
  job.left.store(false, std::memory_order_relaxed);
  // ThreadSanitizer does not see libgomp's synchronisation. The store and the load of `job.edge` replace it. For the
  // same reason the job is a global and the region captures nothing.
  job.edge.store(0, std::memory_order_release);
#pragma omp parallel num_threads(static_cast <int>(pieces))
  run_piece(omp_get_thread_num(), omp_get_num_threads());
  job.edge.load(std::memory_order_acquire);
  job.thrown_mutex.assume_held();  // no other thread uses the job any more
  if (job.thrown) [[unlikely]]
    std::rethrow_exception(std::exchange(job.thrown, nullptr));
  if (job.left.load(std::memory_order_relaxed)) [[unlikely]]
    throw Cancelled(*job.cancellation);
}

}  // namespace tt
