// launch.h for the host's compiler: a launch is a loop, a group is one thread.
//
// For the tests' build of the backend. The loop runs when the simulated runtime comes to it in its stream.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/cuda/runtime/queue.h"

#define TT_DEVICE             // a function of device code
#define TT_FUNCTION inline    // of device code and of the host's
#define TT_UNROLL             // before a loop of constant length
#define TT_ROLLED             // before one that is short, though the compiler cannot know

namespace tt::cuda {

// The simulated runtime's.
void enqueue(StreamHandle stream, std::function<void()> work);

class Group {
 public:
  explicit Group(int64_t index) : index_(index) {}
  int64_t index() const { return index_; }
  int rank() const { return 0; }
  int size() const { return 1; }
  template <typename T, typename Op>
  T reduce(T value, Op) {
    return value;
  }
  void sync() {}

 private:
  int64_t index_;
};

template <typename F>
void run_each(int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) f(i);
}

template <typename F>
void run_groups(int64_t groups, F f) {
  for (int64_t i = 0; i < groups; ++i) {
    Group group(i);
    f(group);
  }
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
  WorkWith<Parameters> work(
      [](const Work& work, StreamHandle stream) {
        const Parameters p = parameters_of<Parameters>(work);
        enqueue(stream, [p] { p.kernel(p.n, p.f); });
      },
      {kernel, n, f});
  work->kernel = reinterpret_cast<const void*>(kernel);
  queue.add(*work);
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
