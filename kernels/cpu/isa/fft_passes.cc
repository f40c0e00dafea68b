// The inner loops of Fourier transforms (iteration/fft_passes.h), compiled once per instruction set.

#include "kernels/cpu/iteration/fft_passes.h"

#include <cstdint>
#include <utility>

namespace tt::cpu::TT_ISA {

namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

#define TT_INLINE __attribute__((always_inline)) inline

template <typename R>
struct VectorOf {
  typedef R type __attribute__((vector_size(kBytes)));
  typedef R unaligned __attribute__((vector_size(kBytes), aligned(sizeof(R)), may_alias));
};
template <typename R>
using Vector = typename VectorOf<R>::type;
template <typename R>
constexpr int kLanes = kBytes / sizeof(R);

// load() and store() access one T, which is R or a vector of R, at any alignment.
template <typename T, typename R>
TT_INLINE T load(const R* p) {
  if constexpr (sizeof(T) == sizeof(R))
    return *p;
  else
    return *reinterpret_cast<const typename VectorOf<R>::unaligned*>(p);
}

template <typename T, typename R>
TT_INLINE void store(T v, R* p) {
  if constexpr (sizeof(T) == sizeof(R))
    *p = v;
  else
    *reinterpret_cast<typename VectorOf<R>::unaligned*>(p) = v;
}

template <typename R, typename F, int... I>
TT_INLINE Vector<R> shuffle(Vector<R> a, Vector<R> b, F, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, F::index(I)...);
}
template <typename R, typename F>
TT_INLINE Vector<R> shuffle(Vector<R> a, Vector<R> b) {
  return shuffle<R>(a, b, F(), std::make_integer_sequence<int, kLanes<R>>());
}

// Interleaves the lower (or upper) halves of a and b in groups of G lanes.
template <typename R, int G, bool kHigh>
struct Zip {
  static constexpr int index(int lane) {
    const int at = lane + (kHigh ? kLanes<R> : 0), group = at / G;
    return group % 2 * kLanes<R> + group / 2 * G + at % G;
  }
};
// Selects every second lane of the concatenation of a and b: the odd lanes if kOdd, else the even ones.
template <typename R, bool kOdd>
struct Unzip {
  static constexpr int index(int lane) { return 2 * lane + (kOdd ? 1 : 0); }
};
template <typename R>
struct Reverse {
  static constexpr int index(int lane) { return kLanes<R> - 1 - lane; }
};

// Interleaves v[0], ..., v[P - 1] in groups of G lanes: the first group of each, then the second group of each, ...
template <typename R, int G, int P>
TT_INLINE void interleave(Vector<R>* v) {
  static_assert(P == 2 || P == 4 || P == 8);
  // Each round halves the number of sequences and doubles the number of vectors per sequence.
#pragma GCC unroll 3
  for (int length = 1; length < P; length *= 2) {
    const int sequences = P / length;
    Vector<R> next[P];
#pragma GCC unroll 4
    for (int j = 0; j < sequences / 2; ++j) {
#pragma GCC unroll 4
      for (int i = 0; i < length; ++i) {
        const Vector<R> a = v[j * length + i], b = v[(j + sequences / 2) * length + i];
        next[j * 2 * length + 2 * i] = shuffle<R, Zip<R, G, false>>(a, b);
        next[j * 2 * length + 2 * i + 1] = shuffle<R, Zip<R, G, true>>(a, b);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) v[i] = next[i];
  }
}

// Transposes a matrix of kLanes vectors of kLanes elements.
template <typename R>
TT_INLINE void transpose(Vector<R>* v) {
  constexpr int n = kLanes<R>;
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
    Vector<R> next[n];
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = shuffle<R, Zip<R, 1, false>>(v[i], v[i + n / 2]);
      next[2 * i + 1] = shuffle<R, Zip<R, 1, true>>(v[i], v[i + n / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) v[i] = next[i];
  }
}

// Load and store a vector of interleaved complex numbers as separate real and imaginary parts.
template <typename R>
TT_INLINE void load_pairs(const R* pairs, Vector<R>& re, Vector<R>& im) {
  const auto a = load<Vector<R>>(pairs), b = load<Vector<R>>(pairs + kLanes<R>);
  re = shuffle<R, Unzip<R, false>>(a, b);
  im = shuffle<R, Unzip<R, true>>(a, b);
}
template <typename R>
TT_INLINE void store_pairs(Vector<R> re, Vector<R> im, R* pairs) {
  store(shuffle<R, Zip<R, 1, false>>(re, im), pairs);
  store(shuffle<R, Zip<R, 1, true>>(re, im), pairs + kLanes<R>);
}

template <typename T>
struct Pair {
  T re, im;
};

// Transforms P values in place, or `radix` values if P is 0.
template <int P, typename T, typename R>
TT_INLINE void butterfly(Pair<T>* x, int radix, const R* radix_roots) {
  if constexpr (P == 2) {
    const Pair<T> a = x[0], b = x[1];
    x[0] = {a.re + b.re, a.im + b.im};
    x[1] = {a.re - b.re, a.im - b.im};
  } else if constexpr (P == 4) {
    const T ar = x[0].re + x[2].re, ai = x[0].im + x[2].im, br = x[0].re - x[2].re, bi = x[0].im - x[2].im;
    const T cr = x[1].re + x[3].re, ci = x[1].im + x[3].im, dr = x[1].re - x[3].re, di = x[1].im - x[3].im;
    x[0] = {ar + cr, ai + ci};
    x[1] = {br + di, bi - dr};
    x[2] = {ar - cr, ai - ci};
    x[3] = {br - di, bi + dr};
  } else if constexpr (P == 8) {
    const R half = R(0.70710678118654752440);
    Pair<T> even[4], odd[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      even[j] = {x[j].re + x[j + 4].re, x[j].im + x[j + 4].im};
      odd[j] = {x[j].re - x[j + 4].re, x[j].im - x[j + 4].im};
    }
    // Multiplies by exp(-pi i j / 4).
    odd[1] = {(odd[1].re + odd[1].im) * half, (odd[1].im - odd[1].re) * half};
    odd[2] = {odd[2].im, -odd[2].re};
    odd[3] = {(odd[3].im - odd[3].re) * half, (odd[3].im + odd[3].re) * -half};
    butterfly<4>(even, 4, radix_roots);
    butterfly<4>(odd, 4, radix_roots);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      x[2 * j] = even[j];
      x[2 * j + 1] = odd[j];
    }
  } else {  // odd radix: outputs t and radix - t share their products
    constexpr int kMaxRadix = P == 0 ? 32 : P;
    const int n = P == 0 ? radix : P;
    Pair<T> sum[kMaxRadix / 2 + 1], difference[kMaxRadix / 2 + 1];
    const Pair<T> first = x[0];
    Pair<T> all = first;
#pragma GCC unroll 8
    for (int j = 1; j <= (n - 1) / 2; ++j) {
      sum[j] = {x[j].re + x[n - j].re, x[j].im + x[n - j].im};
      difference[j] = {x[j].re - x[n - j].re, x[j].im - x[n - j].im};
      all = {all.re + sum[j].re, all.im + sum[j].im};
    }
    x[0] = all;
#pragma GCC unroll 8
    for (int t = 1; t <= (n - 1) / 2; ++t) {
      Pair<T> even = first, odd = {T{}, T{}};
#pragma GCC unroll 8
      for (int j = 1; j <= (n - 1) / 2; ++j) {
        const R c = radix_roots[2 * (j * t % n)], s = radix_roots[2 * (j * t % n) + 1];
        even = {even.re + c * sum[j].re, even.im + c * sum[j].im};
        odd = {odd.re - s * difference[j].im, odd.im + s * difference[j].re};
      }
      x[t] = {even.re + odd.re, even.im + odd.im};
      x[n - t] = {even.re - odd.re, even.im - odd.im};
    }
  }
}

// Computes the butterfly at element q of group k. Multiplies by twiddle factors unless they are all 1.
template <int P, bool kTwiddled, typename T, typename R>
TT_INLINE void butterfly_at(const FftPass<R>& pass, const R* twiddles, int64_t k, int64_t q, Split<R> x, Split<R> y) {
  const int n = P == 0 ? static_cast<int>(pass.radix) : P;
  Pair<T> v[P == 0 ? 32 : P];
  const int64_t apart = pass.rest * pass.width, from = k * pass.width + q;
  v[0] = {load<T>(x.re + from), load<T>(x.im + from)};
#pragma GCC unroll 16
  for (int j = 1; j < n; ++j) v[j] = {load<T>(x.re + from + j * apart), load<T>(x.im + from + j * apart)};
  butterfly<P>(v, n, pass.radix_roots);
  const int64_t to = k * n * pass.width + q;
  store(v[0].re, y.re + to);
  store(v[0].im, y.im + to);
#pragma GCC unroll 16
  for (int t = 1; t < n; ++t) {
    T re = v[t].re, im = v[t].im;
    if constexpr (kTwiddled) {
      const R wr = twiddles[2 * t - 2], wi = twiddles[2 * t - 1];
      const T product_re = re * wr - im * wi;
      im = re * wi + im * wr;
      re = product_re;
    }
    store(re, y.re + to + t * pass.width);
    store(im, y.im + to + t * pass.width);
  }
}

template <int P, bool kTwiddled, typename R>
TT_INLINE void group(const FftPass<R>& pass, int64_t k, Split<R> x, Split<R> y) {
  const R* twiddles = pass.twiddles + 2 * k * (pass.radix - 1);
  int64_t q = 0;
  for (; q + kLanes<R> <= pass.width; q += kLanes<R>) {
    butterfly_at<P, kTwiddled, Vector<R>>(pass, twiddles, k, q, x, y);
  }
  for (; q < pass.width; ++q) butterfly_at<P, kTwiddled, R>(pass, twiddles, k, q, x, y);
}

template <int P, typename R>
void wide_of(const FftPass<R>& given, Split<R> x, Split<R> y) {
  const FftPass<R> pass = given;
  group<P, false>(pass, 0, x, y);
  for (int64_t k = 1; k < pass.rest; ++k) group<P, true>(pass, k, x, y);
}

template <typename R>
void wide(const FftPass<R>& pass, Split<R> x, Split<R> y) {
  switch (pass.radix) {
    case 2: return wide_of<2>(pass, x, y);
    case 3: return wide_of<3>(pass, x, y);
    case 4: return wide_of<4>(pass, x, y);
    case 5: return wide_of<5>(pass, x, y);
    case 7: return wide_of<7>(pass, x, y);
    case 8: return wide_of<8>(pass, x, y);
    default: return wide_of<0>(pass, x, y);
  }
}

template <int P, bool kSwapped, typename R>
void wide_to_pairs_of(const FftPass<R>& pass, Split<R> x, R* pairs, R scale) {
  using V = Vector<R>;
  const int n = P == 0 ? static_cast<int>(pass.radix) : P;
  for (int64_t q = 0; q < pass.width; q += kLanes<R>) {
    Pair<V> v[P == 0 ? 32 : P];
    v[0] = {load<V>(x.re + q), load<V>(x.im + q)};
#pragma GCC unroll 16
    for (int j = 1; j < n; ++j) v[j] = {load<V>(x.re + q + j * pass.width), load<V>(x.im + q + j * pass.width)};
    butterfly<P>(v, n, pass.radix_roots);
#pragma GCC unroll 16
    for (int t = 0; t < n; ++t) {
      const V re = v[t].re * scale, im = v[t].im * scale;
      store_pairs<R>(kSwapped ? im : re, kSwapped ? re : im, pairs + 2 * (q + t * pass.width));
    }
  }
}

template <bool kSwapped, typename R>
void wide_to_pairs_from(const FftPass<R>& pass, Split<R> x, R* pairs, R scale) {
  switch (pass.radix) {
    case 2: return wide_to_pairs_of<2, kSwapped>(pass, x, pairs, scale);
    case 3: return wide_to_pairs_of<3, kSwapped>(pass, x, pairs, scale);
    case 4: return wide_to_pairs_of<4, kSwapped>(pass, x, pairs, scale);
    case 5: return wide_to_pairs_of<5, kSwapped>(pass, x, pairs, scale);
    case 7: return wide_to_pairs_of<7, kSwapped>(pass, x, pairs, scale);
    case 8: return wide_to_pairs_of<8, kSwapped>(pass, x, pairs, scale);
    default: return wide_to_pairs_of<0, kSwapped>(pass, x, pairs, scale);
  }
}

template <typename R>
void wide_to_pairs(const FftPass<R>& pass, Split<R> x, R* pairs, bool swapped, R scale) {
  swapped ? wide_to_pairs_from<true>(pass, x, pairs, scale) : wide_to_pairs_from<false>(pass, x, pairs, scale);
}

// read(i) returns the vector of complex numbers that starts at input element i.
template <int P, int G, typename R, typename Read>
TT_INLINE void shuffled_of(const FftPass<R>& pass, Read read, Split<R> y) {
  using V = Vector<R>;
  const int64_t apart = pass.rest * pass.width;
  const R* twiddles = pass.twiddles;
  for (int64_t i = 0; i < apart; i += kLanes<R>, twiddles += 2 * (P - 1) * kLanes<R>) {
    Pair<V> v[P];
#pragma GCC unroll 8
    for (int j = 0; j < P; ++j) v[j] = read(j * apart + i);
    butterfly<P>(v, P, pass.radix_roots);
    V re[P], im[P];
    re[0] = v[0].re;
    im[0] = v[0].im;
#pragma GCC unroll 8
    for (int t = 1; t < P; ++t) {
      const auto wr = load<V>(twiddles + (2 * t - 2) * kLanes<R>), wi = load<V>(twiddles + (2 * t - 1) * kLanes<R>);
      re[t] = v[t].re * wr - v[t].im * wi;
      im[t] = v[t].re * wi + v[t].im * wr;
    }
    interleave<R, G, P>(re);
    interleave<R, G, P>(im);
#pragma GCC unroll 8
    for (int t = 0; t < P; ++t) {
      store(re[t], y.re + i * P + t * kLanes<R>);
      store(im[t], y.im + i * P + t * kLanes<R>);
    }
  }
}

template <int G, typename R, typename Read>
TT_INLINE void shuffled_by(const FftPass<R>& pass, Read read, Split<R> y) {
  switch (pass.radix) {
    case 2: return shuffled_of<2, G>(pass, read, y);
    case 4: return shuffled_of<4, G>(pass, read, y);
    default: return shuffled_of<8, G>(pass, read, y);
  }
}

template <typename R>
void shuffled(const FftPass<R>& given, Split<R> x, Split<R> y) {
  const FftPass<R> pass = given;
  const auto read = [=](int64_t i) -> Pair<Vector<R>> {
    return {load<Vector<R>>(x.re + i), load<Vector<R>>(x.im + i)};
  };
  if (pass.width == 1) return shuffled_by<1>(pass, read, y);
  if constexpr (kLanes < R >> 2) {
    if (pass.width == 2) return shuffled_by<2>(pass, read, y);
  }
  if constexpr (kLanes < R >> 4) {
    if (pass.width == 4) return shuffled_by<4>(pass, read, y);
  }
  if constexpr (kLanes < R >> 8) {
    if (pass.width == 8) return shuffled_by<8>(pass, read, y);
  }
}

template <typename R>
void shuffled_from_pairs(const FftPass<R>& given, const R* pairs, bool swapped, Split<R> y) {
  const FftPass<R> pass = given;
  const auto read = [=](int64_t i) {
    Pair<Vector<R>> v;
    load_pairs<R>(pairs + 2 * i, v.re, v.im);
    return v;
  };
  const auto read_swapped = [=](int64_t i) {
    Pair<Vector<R>> v;
    load_pairs<R>(pairs + 2 * i, v.im, v.re);
    return v;
  };
  swapped ? shuffled_by<1>(pass, read_swapped, y) : shuffled_by<1>(pass, read, y);
}

template <typename R>
void split_pairs(const R* pairs, int64_t n, Split<R> dst) {
  int64_t i = 0;
  for (; i + kLanes<R> <= n; i += kLanes<R>) {
    Vector<R> re, im;
    load_pairs<R>(pairs + 2 * i, re, im);
    store(re, dst.re + i);
    store(im, dst.im + i);
  }
  for (; i < n; ++i) {
    dst.re[i] = pairs[2 * i];
    dst.im[i] = pairs[2 * i + 1];
  }
}

template <typename R>
void join_pairs(Split<R> src, int64_t n, R scale, R* pairs) {
  int64_t i = 0;
  for (; i + kLanes<R> <= n; i += kLanes<R>) {
    store_pairs<R>(load<Vector<R>>(src.re + i) * scale, load<Vector<R>>(src.im + i) * scale, pairs + 2 * i);
  }
  for (; i < n; ++i) {
    pairs[2 * i] = src.re[i] * scale;
    pairs[2 * i + 1] = src.im[i] * scale;
  }
}

template <typename R>
void split_lines(const R* pairs, int64_t stride, int64_t n, Split<R> dst) {
  constexpr int lanes = kLanes<R>;
  int64_t k = 0;
  for (; k + lanes <= n; k += lanes) {
    Vector<R> re[lanes], im[lanes];
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) load_pairs<R>(pairs + l * stride + 2 * k, re[l], im[l]);
    transpose<R>(re);
    transpose<R>(im);
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) {
      store(re[i], dst.re + (k + i) * lanes);
      store(im[i], dst.im + (k + i) * lanes);
    }
  }
  for (; k < n; ++k) {
    for (int l = 0; l < lanes; ++l) {
      dst.re[k * lanes + l] = pairs[l * stride + 2 * k];
      dst.im[k * lanes + l] = pairs[l * stride + 2 * k + 1];
    }
  }
}

template <typename R>
void join_lines(Split<R> src, int64_t n, R scale, R* pairs, int64_t stride) {
  constexpr int lanes = kLanes<R>;
  int64_t k = 0;
  for (; k + lanes <= n; k += lanes) {
    Vector<R> re[lanes], im[lanes];
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) {
      re[i] = load<Vector<R>>(src.re + (k + i) * lanes) * scale;
      im[i] = load<Vector<R>>(src.im + (k + i) * lanes) * scale;
    }
    transpose<R>(re);
    transpose<R>(im);
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) store_pairs<R>(re[l], im[l], pairs + l * stride + 2 * k);
  }
  for (; k < n; ++k) {
    for (int l = 0; l < lanes; ++l) {
      pairs[l * stride + 2 * k] = src.re[k * lanes + l] * scale;
      pairs[l * stride + 2 * k + 1] = src.im[k * lanes + l] * scale;
    }
  }
}

template <typename R>
void multiply(Split<R> x, Split<const R> w, int64_t n, Split<R> y) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const R re = x.re[i] * w.re[i] - x.im[i] * w.im[i], im = x.re[i] * w.im[i] + x.im[i] * w.re[i];
    y.re[i] = re;
    y.im[i] = im;
  }
}

// Processes elements 1 to n - 1 as vectors, the last two of which may overlap, or one by one if n - 1 is less than a
// vector.
template <typename R, typename Scalar, typename ByVector>
TT_INLINE void over_inner(int64_t n, Scalar scalar, ByVector vector) {
  if (n <= kLanes<R>) {
    for (int64_t k = 1; k < n; ++k) scalar(k);
    return;
  }
  int64_t k = 1;
  for (; k + kLanes<R> <= n; k += kLanes<R>) vector(k);
  if (k < n) vector(n - kLanes<R>);
}

// Element k of the spectrum of real values, computed from a = z[k] and b = z[half - k].
template <typename T>
TT_INLINE Pair<T> spectrum_at(Pair<T> a, Pair<T> b, Pair<T> root) {
  const T dr = a.im + b.im, di = b.re - a.re;  // dr + i di = (a - conj(b)) / i
  return {a.re + b.re + (root.re * dr - root.im * di), a.im - b.im + (root.re * di + root.im * dr)};
}

template <typename R>
void spectrum_of_reals(Split<R> z, Split<const R> roots, int64_t half, R scale, R* pairs) {
  using V = Vector<R>;
  scale /= 2;
  const auto scalar = [&](int64_t k) {
    const int64_t a = k == half ? 0 : k, b = k == 0 ? 0 : half - k;
    const Pair<R> v = spectrum_at<R>({z.re[a], z.im[a]}, {z.re[b], z.im[b]}, {roots.re[k], roots.im[k]});
    pairs[2 * k] = v.re * scale;
    pairs[2 * k + 1] = v.im * scale;
  };
  scalar(0);
  scalar(half);
  const auto vector = [&](int64_t k) {
    const int64_t b = half - k - kLanes<R> + 1;
    const auto br = load<V>(z.re + b), bi = load<V>(z.im + b);
    const Pair<V> v = spectrum_at<V>({load<V>(z.re + k), load<V>(z.im + k)},
                                     {shuffle<R, Reverse<R>>(br, br), shuffle<R, Reverse<R>>(bi, bi)},
                                     {load<V>(roots.re + k), load<V>(roots.im + k)});
    store_pairs<R>(v.re * scale, v.im * scale, pairs + 2 * k);
  };
  over_inner<R>(half, scalar, vector);
}

// Computes z[k] from the elements a = X[k] and b = X[half - k] of a spectrum.
template <typename T>
TT_INLINE Pair<T> reals_at(Pair<T> a, Pair<T> b, Pair<T> root) {
  const T dr = a.re - b.re, di = a.im + b.im;  // a - conj(b); multiplied by conj(root) and i below
  return {a.re + b.re - (di * root.re - dr * root.im), a.im - b.im + (dr * root.re + di * root.im)};
}

template <typename R>
void reals_from_spectrum(const R* pairs, Split<const R> roots, int64_t half, Split<R> z) {
  using V = Vector<R>;
  const Pair<R> first = reals_at<R>({pairs[0], R(0)}, {pairs[2 * half], R(0)}, {roots.re[0], roots.im[0]});
  z.re[0] = first.re;
  z.im[0] = first.im;
  const auto vector = [&](int64_t k) {
    Pair<V> a, b;
    load_pairs<R>(pairs + 2 * k, a.re, a.im);
    load_pairs<R>(pairs + 2 * (half - k - kLanes<R> + 1), b.re, b.im);
    b = {shuffle<R, Reverse<R>>(b.re, b.re), shuffle<R, Reverse<R>>(b.im, b.im)};
    const Pair<V> v = reals_at<V>(a, b, {load<V>(roots.re + k), load<V>(roots.im + k)});
    store(v.re, z.re + k);
    store(v.im, z.im + k);
  };
  const auto scalar = [&](int64_t k) {
    const R *a = pairs + 2 * k, *b = pairs + 2 * (half - k);
    const Pair<R> v = reals_at<R>({a[0], a[1]}, {b[0], b[1]}, {roots.re[k], roots.im[k]});
    z.re[k] = v.re;
    z.im[k] = v.im;
  };
  over_inner<R>(half, scalar, vector);
}

// Calls f(l, T()) for the elements of a row, where T is a vector, or a number for the remainder.
template <typename R, typename F>
TT_INLINE void over_row(int64_t lines, F f) {
  int64_t l = 0;
  for (; l + kLanes<R> <= lines; l += kLanes<R>) f(l, Vector<R>());
  for (; l < lines; ++l) f(l, R());
}

template <typename R>
void spectra_of_reals(Split<R> z, Split<const R> roots, int64_t half, int64_t lines, Split<R> spectra) {
  for (int64_t k = 0; k <= half; ++k) {
    const int64_t a = (k == half ? 0 : k) * lines, b = (k == 0 ? 0 : half - k) * lines;
    const R re = roots.re[k], im = roots.im[k];
    over_row<R>(
        lines, [&]<typename T>(int64_t l, T zero) __attribute__((always_inline)) {
          const Pair<T> v = spectrum_at<T>({load<T>(z.re + a + l), load<T>(z.im + a + l)},
                                           {load<T>(z.re + b + l), load<T>(z.im + b + l)}, {zero + re, zero + im});
          store<T>(v.re * R(0.5), spectra.re + k * lines + l);
          store<T>(v.im * R(0.5), spectra.im + k * lines + l);
        });
  }
}

template <typename R>
void reals_from_spectra(Split<R> spectra, Split<const R> roots, int64_t half, int64_t lines, Split<R> z) {
  for (int64_t l = 0; l < lines; ++l) spectra.im[l] = spectra.im[half * lines + l] = 0;
  for (int64_t k = 0; k < half; ++k) {
    const int64_t a = k * lines, b = (half - k) * lines;
    const R re = roots.re[k], im = roots.im[k];
    over_row<R>(
        lines, [&]<typename T>(int64_t l, T zero) __attribute__((always_inline)) {
          const Pair<T> v =
              reals_at<T>({load<T>(spectra.re + a + l), load<T>(spectra.im + a + l)},
                          {load<T>(spectra.re + b + l), load<T>(spectra.im + b + l)}, {zero + re, zero + im});
          store<T>(v.re, z.re + k * lines + l);
          store<T>(v.im, z.im + k * lines + l);
        });
  }
}

// Loads the elements k, k + 1, ... at `low` and half - k, half - k - 1, ... at `high`. T is a vector or a number.
template <typename T, typename R>
TT_INLINE void load_mirrored(const R* low, const R* high, Pair<T>& a, Pair<T>& b) {
  if constexpr (sizeof(T) == sizeof(R)) {
    a = {low[0], low[1]};
    b = {high[0], high[1]};
  } else {
    load_pairs<R>(low, a.re, a.im);
    load_pairs<R>(high - 2 * (kLanes<R> - 1), b.re, b.im);
    b = {shuffle<R, Reverse<R>>(b.re, b.re), shuffle<R, Reverse<R>>(b.im, b.im)};
  }
}
template <typename T, typename R>
TT_INLINE void store_mirrored(Pair<T> a, Pair<T> b, R* low, R* high) {
  if constexpr (sizeof(T) == sizeof(R)) {
    low[0] = a.re;
    low[1] = a.im;
    high[0] = b.re;
    high[1] = b.im;
  } else {
    store_pairs<R>(a.re, a.im, low);
    store_pairs<R>(shuffle<R, Reverse<R>>(b.re, b.re), shuffle<R, Reverse<R>>(b.im, b.im), high - 2 * (kLanes<R> - 1));
  }
}

// Element half - k has the root -conj(roots[k]), so that both elements share their products.
template <typename R>
void pairs_of_spectrum(const R* x_low, const R* x_high, Split<const R> roots, int64_t n, R scale, R* y_low, R* y_high) {
  scale /= 2;
  over_row<R>(
      n, [&]<typename T>(int64_t i, T) __attribute__((always_inline)) {
        Pair<T> a, b;
        load_mirrored(x_low + 2 * i, x_high - 2 * i, a, b);
        const T wr = load<T>(roots.re + i), wi = load<T>(roots.im + i);
        const T dr = a.im + b.im, di = b.re - a.re, p = wr * dr - wi * di, q = wr * di + wi * dr;
        const T re = a.re + b.re, im = a.im - b.im;
        store_mirrored<T>({(re + p) * scale, (im + q) * scale}, {(re - p) * scale, (q - im) * scale}, y_low + 2 * i,
                          y_high - 2 * i);
      });
}

template <typename R>
void pairs_of_reals(const R* x_low, const R* x_high, Split<const R> roots, int64_t n, R* y_low, R* y_high) {
  over_row<R>(
      n, [&]<typename T>(int64_t i, T) __attribute__((always_inline)) {
        Pair<T> a, b;
        load_mirrored(x_low + 2 * i, x_high - 2 * i, a, b);
        const T wr = load<T>(roots.re + i), wi = load<T>(roots.im + i);
        const T dr = a.re - b.re, di = a.im + b.im, p = di * wr - dr * wi, q = dr * wr + di * wi;
        const T re = a.re + b.re, im = a.im - b.im;
        store_mirrored<T>({re - p, im + q}, {re + p, q - im}, y_low + 2 * i, y_high - 2 * i);
      });
}

template <typename R, bool kTransposedFirst>
TT_INLINE void transpose_tile(Split<R> x, int64_t x_stride, Split<const R> row_factors, Split<const R> factors,
                              Split<R> y, int64_t y_stride) {
  constexpr int lanes = kLanes<R>;
  Vector<R> re[lanes], im[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    re[i] = load<Vector<R>>(x.re + i * x_stride);
    im[i] = load<Vector<R>>(x.im + i * x_stride);
  }
  if constexpr (kTransposedFirst) {
    transpose<R>(re);
    transpose<R>(im);
  }
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    const auto fr = load<Vector<R>>(factors.re + i * lanes), fi = load<Vector<R>>(factors.im + i * lanes);
    const R c = row_factors.re[i], s = row_factors.im[i];
    const Vector<R> wr = fr * c - fi * s, wi = fr * s + fi * c, r = re[i];
    re[i] = r * wr - im[i] * wi;
    im[i] = r * wi + im[i] * wr;
  }
  if constexpr (!kTransposedFirst) {
    transpose<R>(re);
    transpose<R>(im);
  }
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    store(re[i], y.re + i * y_stride);
    store(im[i], y.im + i * y_stride);
  }
}

template <typename R>
void transpose_multiplied(Split<R> x, int64_t x_stride, Split<const R> row_factors, Split<const R> factors, Split<R> y,
                          int64_t y_stride) {
  transpose_tile<R, true>(x, x_stride, row_factors, factors, y, y_stride);
}
template <typename R>
void multiply_transposed(Split<R> x, int64_t x_stride, Split<const R> row_factors, Split<const R> factors, Split<R> y,
                         int64_t y_stride) {
  transpose_tile<R, false>(x, x_stride, row_factors, factors, y, y_stride);
}

template <typename R>
FftPasses<R> all_passes() {
  static_assert(kLanes<R> <= kLongestVector);
  return {kLanes<R>,
          &wide<R>,
          &wide_to_pairs<R>,
          &shuffled<R>,
          &shuffled_from_pairs<R>,
          &split_pairs<R>,
          &join_pairs<R>,
          &split_lines<R>,
          &join_lines<R>,
          &multiply<R>,
          &spectrum_of_reals<R>,
          &reals_from_spectrum<R>,
          &spectra_of_reals<R>,
          &reals_from_spectra<R>,
          &pairs_of_spectrum<R>,
          &pairs_of_reals<R>,
          &transpose_multiplied<R>,
          &multiply_transposed<R>};
}

#undef TT_INLINE

}  // namespace

FftPasses<float> fft_passes_float() { return all_passes<float>(); }
FftPasses<double> fft_passes_double() { return all_passes<double>(); }

}  // namespace tt::cpu::TT_ISA
