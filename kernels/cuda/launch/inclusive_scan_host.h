// inclusive_scan.h for the host's compiler. Scans in pieces, as threads would, so that tests detect a non-associative
// op.
#pragma once

#include <vector>

#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

template <typename Load, typename Op, typename Store>
void inclusive_scan(const Queue& queue, int64_t n, Load load, Op op, Store store) {
  if (n <= 0) return;
  queue.add([=](StreamHandle stream) {
    enqueue(stream, [=] {
      const int64_t piece = 2 + draw(7);
      std::vector<decltype(load(int64_t{0}))> totals;
      for (int64_t i = 0; i < n; ++i) totals.push_back(i % piece == 0 ? load(i) : op(totals.back(), load(i)));
      for (int64_t i = piece; i < n; ++i) totals[i] = op(totals[i / piece * piece - 1], totals[i]);
      Shuffle order(n);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = order.next();
        store(at, totals[at]);
      }
    });
  });
}

}  // namespace tt::cuda
