// inclusive_scan.h for the host's compiler.
#pragma once

#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

template <typename Load, typename Op, typename Store>
void inclusive_scan(const Queue& queue, int64_t n, Load load, Op op, Store store) {
  if (n <= 0) return;
  queue.add([=](StreamHandle stream) {
    enqueue(stream, [=] {
      auto total = load(0);
      store(0, total);
      for (int64_t i = 1; i < n; ++i) store(i, total = op(total, load(i)));
    });
  });
}

}  // namespace tt::cuda
