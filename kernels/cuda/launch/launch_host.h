// launch.h for the host's compiler, which the tests' build of the backend uses.
//
// A launch is a loop that runs when the simulated runtime reaches it in its stream. The order of indices and groups is
// random. A group has a random, small number of threads, which run one at a time (simulated_group.h). A reduction
// applies `op` in the order of a GPU, but with smaller warps.
#pragma once

#include <cstdint>
#include <functional>
#include <source_location>
#include <utility>

#include "kernels/cuda/launch/simulated_group.h"
#include "kernels/cuda/runtime/queue.h"

#define TT_DEVICE           // a function of device code
#define TT_FUNCTION inline  // callable from device and host code
#define TT_UNROLL           // before a loop of constant length
#define TT_ROLLED           // before a short loop whose length the compiler does not know

namespace tt::cuda {

// Defined by the simulated runtime.
void enqueue(StreamHandle stream, std::function<void()> work);

class Group {
 public:
  using Place = std::source_location;
  Group(SimulatedGroup& simulated_group, int64_t index, int rank)
      : simulated_group_(simulated_group), index_(index), rank_(rank) {}
  int64_t index() const { return index_; }
  int rank() const { return rank_; }
  int size() const { return simulated_group_.size(); }
  void sync(Place place = Place::current()) { simulated_group_.wait(rank_, {Wait::kSync, nullptr, place}); }

  template <typename T, typename Op>
  T reduce(T value, Op op, Place place = Place::current()) {
    const T* values = simulated_group_.exchange(rank_, value, {Wait::kReduce, &typeid(std::pair<T, Op>), place});
    if (size() <= kWarp) return size() == 1 ? value : reduced<1>(values, rank_, op);
    T total = reduced<1>(values, 0, op);
    for (int first = kWarp; first < size(); first += kWarp) total = op(total, reduced<1>(values + first, 0, op));
    return total;
  }

 private:
  // Returns a lane's value after the exchanges with lanes that are `kOffset` or more away.
  template <int kOffset, typename T, typename Op>
  static T reduced(const T* values, int lane, Op& op) {
    if constexpr (kOffset == kWarp) {
      return values[lane];
    } else {
      return op(reduced<2 * kOffset>(values, lane, op), reduced<2 * kOffset>(values, lane ^ kOffset, op));
    }
  }

  SimulatedGroup& simulated_group_;
  int64_t index_;
  int rank_;
};

template <typename F>
void run_each(int64_t n, F f) {
  constexpr int64_t kBlock = 8;  // adjacent indices per block
  const int64_t blocks = (n + kBlock - 1) / kBlock, flip = draw(kBlock);
  Shuffle order(blocks);
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = order.next() * kBlock;
    for (int64_t k = 0; k < kBlock; ++k) {
      if (const int64_t i = begin + (k ^ flip); i < n) f(i);
    }
  }
}

template <typename F>
void run_groups(int64_t groups, F f) {
  SimulatedGroup::run(groups, typeid(F), [&f](SimulatedGroup& simulated_group, int64_t index, int rank) {
    Group group(simulated_group, index, rank);
    f(group);
  });
}

template <typename F>
struct CountAndBody {
  void (*kernel)(int64_t, F);
  int64_t n;
  F f;
};

template <typename F>
void launch(const Queue& queue, void (*kernel)(int64_t, F), int64_t n, const F& f) {
  using Parameters = CountAndBody<F>;
  KernelLaunchWith<Parameters> deferred(
      [](const KernelLaunch& launch, StreamHandle stream) {
        const Parameters p = parameters_of<Parameters>(launch);
        enqueue(stream, [p] { p.kernel(p.n, p.f); });
      },
      {kernel, n, f});
  deferred->kernel = reinterpret_cast<const void*>(kernel);
  queue.add(*deferred);
}

template <int kBlocks = 0, typename F>
void for_each(const Queue& queue, int64_t n, F f) {
  if (n > 0) launch(queue, &run_each<F>, n, f);
}

template <typename F>
void for_each_group(const Queue& queue, int64_t groups, int64_t, F f) {
  if (groups > 0) launch(queue, &run_groups<F>, groups, f);
}

}  // namespace tt::cuda
