#include "kernels/cpu/lapack/tridiagonal.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "kernels/cpu/blas/routines.h"

namespace tt::cpu {
namespace {

constexpr int kMinPart = 64;   // rows per part; smaller ones take less time than waking a thread
constexpr int kMaxParts = 32;  // with the 96 holders of an OpenBlasCall, at most 128 threads call OpenBLAS
constexpr int kWorkPerRow = 5, kIntegersPerRow = 8;  // beside the n^2 elements of a part

int64_t at(int row, int column, int ld) { return row + int64_t{column} * ld; }

}  // namespace

template <typename R>
Tridiagonal<R>::Tridiagonal(int n)
    : n_(n),
      work_(static_cast<size_t>(at(0, n + kWorkPerRow, n))),
      integers_(static_cast<size_t>(at(0, kIntegersPerRow, n))),
      order_(static_cast<size_t>(n)) {
  int count = 1;
  while (count < kMaxParts && n / (count * 2) >= kMinPart) count *= 2;
  for (int i = 0; i < count; ++i) {
    const int begin = static_cast<int>(int64_t{n} * i / count), end = static_cast<int>(int64_t{n} * (i + 1) / count);
    parts_.push_back({begin, end - begin});
  }
}

// The workspaces of parts do not overlap: that of rows [b, b + s) has s (n + 5) elements.
template <typename R>
int Tridiagonal<R>::decompose(Part part, R* d, R* e, R* z) {
  const int info = lapack::stedc(part.size, d + part.begin, e + part.begin, z + at(part.begin, part.begin, n_), n_,
                                 work_.data() + at(0, part.begin, n_ + kWorkPerRow),
                                 integers_.data() + kIntegersPerRow * part.begin);
  std::iota(order_.data() + part.begin, order_.data() + part.begin + part.size, 1);
  return info;
}

template <typename R>
int Tridiagonal<R>::merge(Part left, Part right, R rho, R* d, R* z) {
  return lapack::laed1(left.size + right.size, d + left.begin, z + at(left.begin, left.begin, n_), n_,
                       order_.data() + left.begin, rho, left.size, work_.data() + at(0, left.begin, n_ + kWorkPerRow),
                       integers_.data() + kIntegersPerRow * left.begin);
}

template <typename R>
void Tridiagonal<R>::sort(R* d, R* z) {
  R* sorted = work_.data();
  for (int i = 0; i < n_; ++i) sorted[i] = d[order_[static_cast<size_t>(i)] - 1];
  std::copy_n(sorted, n_, d);
  for (int i = 0; i < n_; ++i)
    std::copy_n(z + at(0, order_[static_cast<size_t>(i)] - 1, n_), n_, sorted + at(0, i, n_));
  std::copy_n(sorted, int64_t{n_} * n_, z);
}

// Merges pairs of neighbours until one part is left. rho[i] is the element beside the diagonal between parts i and i
// + 1.
template <typename R>
int Tridiagonal<R>::merge_all(std::vector<R> rho, R* d, R* z) {
  std::atomic<int> info{0};
  for (std::vector<Part> left = parts_; left.size() > 1 && info == 0;) {
    check_cancelled();
    const auto merge_pair = [&](size_t pair) {
      const Part &a = left[2 * pair], &b = left[2 * pair + 1];
      if (const int failed = merge(a, b, rho[2 * pair], d, z)) info = failed;
    };
    const size_t pairs = left.size() / 2;
    if (pairs == 1) {
      merge_pair(0);  // alone, so that its products use all threads
    } else {
      parallel_for(static_cast<int64_t>(pairs), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) merge_pair(static_cast<size_t>(i));
      });
    }
    std::vector<Part> merged;
    std::vector<R> between;
    for (size_t i = 0; i < pairs; ++i) {
      merged.push_back({left[2 * i].begin, left[2 * i].size + left[2 * i + 1].size});
      if (i + 1 < pairs) between.push_back(rho[2 * i + 1]);
    }
    left = merged, rho = between;
  }
  return info;
}

template <typename R>
int Tridiagonal<R>::decompose(R* d, R* e, R* z) {
  if (parts_.size() == 1) return decompose(parts_[0], d, e, z);
  // Scaled to a norm of about 1, because a merge compares differences of eigenvalues with elements of unit vectors.
  R largest = 0;
  for (int i = 0; i < n_; ++i) largest = std::max({largest, std::abs(d[i]), i + 1 < n_ ? std::abs(e[i]) : R(0)});
  const int exponent = largest > 0 ? std::min(-std::ilogb(largest), std::numeric_limits<R>::max_exponent - 1) : 0;
  for (int i = 0; i < n_; ++i) d[i] = std::ldexp(d[i], exponent);
  for (int i = 0; i + 1 < n_; ++i) e[i] = std::ldexp(e[i], exponent);

  std::fill_n(z, int64_t{n_} * n_, R(0));
  // A cut replaces the element e beside the diagonal by e times a product of a vector with itself, which also holds
  // two elements of the diagonal.
  std::vector<R> rho;
  for (size_t i = 1; i < parts_.size(); ++i) {
    const int cut = parts_[i].begin;
    rho.push_back(e[cut - 1]);
    d[cut - 1] -= std::abs(e[cut - 1]);
    d[cut] -= std::abs(e[cut - 1]);
  }
  std::atomic<int> failed{0};
  parallel_for(static_cast<int64_t>(parts_.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (const int info = decompose(parts_[static_cast<size_t>(i)], d, e, z)) failed = info;
    }
  });
  if (failed != 0) return failed;
  if (const int info = merge_all(std::move(rho), d, z)) return info;
  sort(d, z);
  for (int i = 0; i < n_; ++i) d[i] = std::ldexp(d[i], -exponent);
  return 0;
}

template class Tridiagonal<float>;
template class Tridiagonal<double>;

}  // namespace tt::cpu
