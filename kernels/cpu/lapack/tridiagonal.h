// Tridiagonal: eigenvalues and eigenvectors of real symmetric tridiagonal matrices, on several threads.
//
// Divide and conquer (Cuppen 1981), with LAPACK's routines: the matrix is divided into parts, which are decomposed at
// the same time, and pairs of neighbours are merged until one is left. LAPACK's own driver does the same on one thread.
// The parts depend on the size only, so that the result does not depend on the number of threads.
#pragma once

#include <vector>

namespace tt::cpu {

template <typename R>
class Tridiagonal {
 public:
  // For matrices of n rows.
  explicit Tridiagonal(int n);
  // `d` has n elements and receives the eigenvalues in ascending order. `e` has the n - 1 elements beside the diagonal
  // and is overwritten. `z` (n x n, column-major) receives the eigenvectors. Returns nonzero if the iteration does not
  // converge. Throws Cancelled.
  int decompose(R* d, R* e, R* z);

 private:
  // Rows [begin, begin + size).
  struct Part {
    int begin, size;
  };
  int decompose(Part part, R* d, R* e, R* z);
  int merge(Part left, Part right, R rho, R* d, R* z);
  int merge_all(std::vector<R> rho, R* d, R* z);
  void sort(R* d, R* z);

  int n_;
  std::vector<Part> parts_;
  std::vector<R> work_;  // n + 5 elements for each row
  std::vector<int> integers_, order_;
};

}  // namespace tt::cpu
