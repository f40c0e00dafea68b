// Matrix exponential by the Padé approximant of degree 13 with scaling and squaring (Higham 2005). One group of threads
// computes each matrix.
#include "kernels/common/linalg/decomposition.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/lu_device.h"

namespace tt::cuda {
namespace {

constexpr double kMaxNorm = 5.371920351148152;  // largest norm for which the approximant is accurate in double

// Intermediate results for one matrix, n x n each.
template <typename T>
struct Exponential {
  using R = real_of_t<T>;
  static constexpr int kMatrices = 7;
  int64_t n;
  T *a, *a2, *a4, *a6, *odd, *even, *other;

  TT_DEVICE Exponential(int64_t n, T* work)
      : n(n),
        a(work),
        a2(a + n * n),
        a4(a2 + n * n),
        a6(a4 + n * n),
        odd(a6 + n * n),
        even(odd + n * n),
        other(even + n * n) {}

  TT_DEVICE void multiply(Group& group, const T* x, const T* y, T* to) const {
    for (int64_t e = group.rank(); e < n * n; e += group.size()) {
      const int64_t r = e / n, c = e % n;
      T sum = T(0);
      for (int64_t i = 0; i < n; ++i) sum += x[r * n + i] * y[i * n + c];
      to[e] = sum;
    }
    group.sync();
  }
  // to = by[0] a6 + by[1] a4 + by[2] a2 + by[3] I, plus `add` if it is not null.
  TT_DEVICE void combine(Group& group, const R (&by)[4], const T* add, T* to) const {
    for (int64_t e = group.rank(); e < n * n; e += group.size()) {
      const T diagonal = T(e / n == e % n ? by[3] : R(0));
      const T sum = math::times(a6[e], by[0]) + math::times(a4[e], by[1]) + math::times(a2[e], by[2]) + diagonal;
      to[e] = add ? sum + add[e] : sum;
    }
    group.sync();
  }
  // The 1-norm: the largest column sum of magnitudes.
  TT_DEVICE R norm(Group& group, const T* x) const {
    R most = 0;
    for (int64_t c = group.rank(); c < n; c += group.size()) {
      R sum = 0;
      for (int64_t r = 0; r < n; ++r) sum += math::abs(x[r * n + c]);
      most = sum > most ? sum : most;
    }
    return group.reduce(most, [](R x, R y) { return x > y ? x : y; });
  }
  // Loads the matrix and halves it until the approximant is accurate. Returns the number of halvings.
  TT_DEVICE int load(Group& group, const T* input) const {
    const R size = norm(group, input);
    const bool finite = math::isfinite(size);
    int halvings = 0;
    for (R left = size; finite && left > static_cast<R>(kMaxNorm); left /= 2) ++halvings;
    const R scale = math::exp2(static_cast<R>(-halvings));
    for (int64_t e = group.rank(); e < n * n; e += group.size()) a[e] = math::times(input[e], scale);
    group.sync();
    return halvings;
  }
  // Computes `even` and `odd`. The numerator of the approximant is even + odd, the denominator is even - odd.
  TT_DEVICE void approximate(Group& group) const {
    multiply(group, a, a, a2);
    multiply(group, a2, a2, a4);
    multiply(group, a2, a4, a6);
    combine(group, {R(1), R(16380), R(40840800), R(0)}, nullptr, even);
    multiply(group, a6, even, other);
    combine(group, {R(33522128640), R(10559470521600), R(1187353796428800), R(32382376266240000)}, other, even);
    multiply(group, a, even, odd);
    combine(group, {R(182), R(960960), R(1323241920), R(0)}, nullptr, even);
    multiply(group, a6, even, other);
    combine(group, {R(670442572800), R(129060195264000), R(7771770303897600), R(64764752532480000)}, other, even);
  }
  // Divides the numerator by the denominator and squares the quotient `squarings` times. Returns a pointer to the
  // result.
  TT_DEVICE const T* finish(Group& group, int squarings, int32_t* pivots) const {
    for (int64_t e = group.rank(); e < n * n; e += group.size()) {
      const T numerator = even[e] + odd[e];
      a2[e] = even[e] - odd[e];
      a4[e] = numerator;
    }
    group.sync();
    factor_lu(group, a2, n, n, pivots);
    exchange_rows(group, pivots, n, a4, n, n, false, nullptr);
    Triangle<T>{a2, n, false, false, true}.solve(group, a4, n);
    Triangle<T>{a2, n, true, false, false}.solve(group, a4, n);
    T *from = a4, *to = a6;
    for (int i = 0; i < squarings; ++i) {
      multiply(group, from, from, to);
      T* const last = from;
      from = to;
      to = last;
    }
    return from;
  }
};

template <typename T>
void exponentials(const Queue& queue, int64_t batch, int64_t n, const T* input, T* works, int32_t* pivots, T* out) {
  for_each_group(queue, batch, n * n, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index();
    const Exponential<T> exponential(n, works + i * Exponential<T>::kMatrices * n * n);
    const int squarings = exponential.load(group, input + i * n * n);
    exponential.approximate(group);
    const T* result = exponential.finish(group, squarings, pivots + i * n);
    for (int64_t e = group.rank(); e < n * n; e += group.size()) out[i * n * n + e] = result[e];
  });
}

}  // namespace

void matrix_exp(const Tensor& input, Tensor& out) {
  const int64_t n = input.size(-1), batch = matrix_count(input);
  if (out.numel() == 0) return;
  if (item_size(input.dtype()) == 2) {
    Tensor wide = empty(out.sizes(), DType::kFloat32, out.device());
    matrix_exp(contiguous_as(input, DType::kFloat32), wide);
    return copy(wide, out);
  }
  const Tensor a = contiguous(input), pivots = empty({{batch, n}}, DType::kInt32, input.device());
  with_linalg_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Tensor work = empty({{batch, Exponential<T>::kMatrices, n, n}}, input.dtype(), input.device());
    exponentials<T>(queue_of(out), batch, n, a.data_as<T>(), work.data_as<T>(), pivots.data_as<int32_t>(),
                    out.data_as<T>());
  });
}

}  // namespace tt::cuda
