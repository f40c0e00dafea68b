#include "kernels/cuda/runtime/solver.h"

namespace tt::cuda {

Solver* solver() {
  static const std::unique_ptr<Solver> solver = make_solver();
  return solver.get();
}

}  // namespace tt::cuda
