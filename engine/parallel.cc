#include "engine/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>

namespace tt {
namespace {

std::atomic<int> width_setting{0};  // 0: as many as this process has cores

// Who has the pool: at most one thread, and it may ask again while it does.
std::atomic<bool> pool_taken{false};
thread_local int leases = 0;

bool take_pool() {
  if (leases > 0) return true;
  return !pool_taken.load(std::memory_order_relaxed) && !pool_taken.exchange(true, std::memory_order_acquire);
}

// The loop that the pool runs; whoever has the pool fills it in.
struct Job {
  int64_t n;
  const absl::FunctionRef<void(int64_t, int64_t)>* body;
  std::atomic<int> edge{0};
};
Job job;

void run_piece(int64_t piece, int64_t pieces) {
  job.edge.load(std::memory_order_acquire);
  (*job.body)(job.n * piece / pieces, job.n * (piece + 1) / pieces);
  job.edge.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace

int num_threads() {
  int n = width_setting.load(std::memory_order_relaxed);
  if (n > 0) return n;
  width_setting.store(omp_get_num_procs(), std::memory_order_relaxed);
  return num_threads();
}

void set_num_threads(int n) { width_setting.store(std::max(n, 1), std::memory_order_relaxed); }

PoolLease::PoolLease(int most)
    : held_(most > 1 && take_pool()),
      width_(held_ ? std::min(num_threads(), most) : 1),
      before_(omp_get_max_threads()) {
  if (held_) ++leases;
  // The calling thread's own setting: what a library's parallel loop will use.
  omp_set_num_threads(width_);
}

PoolLease::~PoolLease() {
  omp_set_num_threads(before_);
  if (held_ && --leases == 0) pool_taken.store(false, std::memory_order_release);
}

void parallel_for(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  int64_t pieces = std::min<int64_t>(num_threads(), grain > 0 ? n / grain : n);
  if (pieces <= 1 || omp_in_parallel()) return body(0, n);
  PoolLease lease;
  pieces = std::min<int64_t>(pieces, lease.width());
  if (pieces <= 1) return body(0, n);
  job.n = n;
  job.body = &body;
  // libgomp's own hand-over is invisible to ThreadSanitizer; these two edges say the same to it.
  // (That is also why the loop is in a global and the region captures nothing.)
  job.edge.store(0, std::memory_order_release);
#pragma omp parallel num_threads(static_cast <int>(pieces))
  run_piece(omp_get_thread_num(), omp_get_num_threads());
  job.edge.load(std::memory_order_acquire);
}

}  // namespace tt
