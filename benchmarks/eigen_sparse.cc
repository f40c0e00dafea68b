// Milliseconds of Eigen's CSR times dense product, the least of several calls, for the sizes of `python -m
// benchmarks.sparse`. A program of its own, because nothing else uses Eigen:
//
//   c++ -O3 -march=native -DNDEBUG -fopenmp -I/usr/include/eigen3 benchmarks/eigen_sparse.cc -o /tmp/eigen_sparse
#include <Eigen/Sparse>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

namespace {

using Csr = Eigen::SparseMatrix<float, Eigen::RowMajor, int64_t>;
using Dense = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Csr random_matrix(int64_t size, double density) {
  std::mt19937 random(0);
  std::vector<int64_t> columns(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) columns[static_cast<size_t>(i)] = i;
  const auto each = static_cast<size_t>(static_cast<double>(size) * density);
  std::vector<Eigen::Triplet<float, int64_t>> entries;
  for (int64_t row = 0; row < size; ++row) {
    std::shuffle(columns.begin(), columns.end(), random);
    for (size_t i = 0; i < each; ++i) entries.emplace_back(row, columns[i], 1.0f);
  }
  Csr matrix(size, size);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

double least_ms(const Csr& a, const Dense& x) {
  using Clock = std::chrono::steady_clock;
  Dense y(a.rows(), x.cols());
  double least = 1e9;
  const auto end = Clock::now() + std::chrono::milliseconds(600);
  for (int i = 0; i < 5 || Clock::now() < end; ++i) {
    const auto start = Clock::now();
    y.noalias() = a * x;
    least = std::min(least, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return least;
}

}  // namespace

int main() {
  constexpr int64_t kSize = 4096;
  for (const double density : {0.01, 0.05, 0.1}) {
    const Csr a = random_matrix(kSize, density);
    for (const int64_t columns : {16, 64, 256}) {
      std::printf("%.2f, %3d columns: %8.3f ms\n", density, static_cast<int>(columns),
                  least_ms(a, Dense::Random(kSize, columns)));
    }
  }
  return 0;
}
