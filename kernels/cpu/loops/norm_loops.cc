#include "kernels/cpu/loops/norm_loops.h"

#include <algorithm>

#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/lanes.h"

namespace tt::cpu::rows {
namespace {

constexpr int64_t kChunk = 4096;  // elements summed in float before the sum is added to a double

// Computes kSums sums over elements [0, n): term(i, load, terms) computes the terms of one element, or of the vector of
// elements that begins with i, from what load(address) returns. Several vectors per sum keep the vector units busy.
template <typename T, int kSums, typename Term>
[[gnu::always_inline]] inline void add_terms(int64_t n, Term term, double (&sums)[kSums]) {
  using Vector = typename Lanes<T>::Vector;
  constexpr int kCount = Lanes<T>::kCount, kVectors = 4;
  const auto load_vector = [](const T* from) -> Vector { return lanes_at(from); };
  const auto load_one = [](const T* from) { return *from; };
  for (double& sum : sums) sum = 0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = std::min(n, begin + kChunk);
    Vector totals[kSums][kVectors] = {};
    const auto add_vector = [&](int64_t i, int v) __attribute__((always_inline)) {
      Vector terms[kSums];
      term(i, load_vector, terms);
#pragma GCC unroll 2
      for (int s = 0; s < kSums; ++s) totals[s][v] += terms[s];
    };
    int64_t i = begin;
    for (; i + kVectors * kCount <= end; i += kVectors * kCount) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) add_vector(i + v * kCount, v);
    }
    for (; i + kCount <= end; i += kCount) add_vector(i, 0);
    T rest[kSums] = {};
    for (; i < end; ++i) {
      T terms[kSums];
      term(i, load_one, terms);
      for (int s = 0; s < kSums; ++s) rest[s] += terms[s];
    }
#pragma GCC unroll 2
    for (int s = 0; s < kSums; ++s) {
      T lanes[kCount];
      lanes_at(lanes) = (totals[s][0] + totals[s][1]) + (totals[s][2] + totals[s][3]);
      sums[s] += join_lanes<kCount>(lanes, [](T a, T b) { return a + b; }) + rest[s];
    }
  }
}
template <typename T, typename Term>
[[gnu::always_inline]] inline double sum_of(int64_t n, Term term) {
  double sums[1];
  add_terms<T>(
      n, [&](int64_t i, auto load, auto* terms) { terms[0] = term(i, load); }, sums);
  return sums[0];
}

template <typename T>
[[gnu::always_inline]] inline void normalize_of(int64_t n, const T* x, T center, T scale, const T* w, const T* b,
                                                T* y) {
  if (w && b) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - center) * scale * w[i] + b[i];
  } else if (w) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - center) * scale * w[i];
  } else if (b) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - center) * scale + b[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - center) * scale;
  }
}

template <typename T>
[[gnu::always_inline]] inline void combine_of(int64_t n, const T* g, const T* w, const T* x, T center, T a, T b, T c,
                                              T* dx) {
  if (w) {
    for (int64_t i = 0; i < n; ++i) dx[i] = a * g[i] * w[i] + b * (x[i] - center) + c;
  } else {
    for (int64_t i = 0; i < n; ++i) dx[i] = a * g[i] + b * (x[i] - center) + c;
  }
}

template <typename T>
[[gnu::always_inline]] inline Sums weighted_of(int64_t n, const T* g, const T* w, const T* x, T center) {
  double sums[2];
  if (w) {
    add_terms<T>(
        n,
        [=](int64_t i, auto load, auto* terms) {
          terms[0] = load(g + i) * load(w + i);
          terms[1] = terms[0] * (load(x + i) - center);
        },
        sums);
  } else {
    add_terms<T>(
        n,
        [=](int64_t i, auto load, auto* terms) {
          terms[0] = load(g + i);
          terms[1] = terms[0] * (load(x + i) - center);
        },
        sums);
  }
  return {sums[0], sums[1]};
}

template <typename T>
[[gnu::always_inline]] inline void affine_of(int64_t n, const T* g, const T* x, T center, T scale, T* dw, T* db) {
  if (dw) {
    for (int64_t i = 0; i < n; ++i) dw[i] += g[i] * (x[i] - center) * scale;
  }
  if (db) {
    for (int64_t i = 0; i < n; ++i) db[i] += g[i];
  }
}

}  // namespace

TT_CLONES double sum(int64_t n, const float* x) {
  return sum_of<float>(n, [=](int64_t i, auto load) { return load(x + i); });
}
TT_CLONES double sum(int64_t n, const double* x) {
  return sum_of<double>(n, [=](int64_t i, auto load) { return load(x + i); });
}
TT_CLONES double squares(int64_t n, const float* x, float center) {
  return sum_of<float>(n, [=](int64_t i, auto load) {
    const auto d = load(x + i) - center;
    return d * d;
  });
}
TT_CLONES double squares(int64_t n, const double* x, double center) {
  return sum_of<double>(n, [=](int64_t i, auto load) {
    const auto d = load(x + i) - center;
    return d * d;
  });
}
TT_CLONES Sums sum_and_dot(int64_t n, const float* g, const float* x, float center) {
  return weighted_of<float>(n, g, nullptr, x, center);
}
TT_CLONES Sums sum_and_dot(int64_t n, const double* g, const double* x, double center) {
  return weighted_of<double>(n, g, nullptr, x, center);
}
TT_CLONES Sums weighted_sum_and_dot(int64_t n, const float* g, const float* w, const float* x, float center) {
  return weighted_of(n, g, w, x, center);
}
TT_CLONES Sums weighted_sum_and_dot(int64_t n, const double* g, const double* w, const double* x, double center) {
  return weighted_of(n, g, w, x, center);
}
TT_CLONES void scale_shift(int64_t n, const float* x, float center, float a, float b, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = a * (x[i] - center) + b;
}
TT_CLONES void scale_shift(int64_t n, const double* x, double center, double a, double b, double* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = a * (x[i] - center) + b;
}
TT_CLONES void normalize(int64_t n, const float* x, float center, float scale, const float* w, const float* b,
                         float* y) {
  normalize_of(n, x, center, scale, w, b, y);
}
TT_CLONES void normalize(int64_t n, const double* x, double center, double scale, const double* w, const double* b,
                         double* y) {
  normalize_of(n, x, center, scale, w, b, y);
}
TT_CLONES void combine(int64_t n, const float* g, const float* w, const float* x, float center, float a, float b,
                       float c, float* dx) {
  combine_of(n, g, w, x, center, a, b, c, dx);
}
TT_CLONES void combine(int64_t n, const double* g, const double* w, const double* x, double center, double a, double b,
                       double c, double* dx) {
  combine_of(n, g, w, x, center, a, b, c, dx);
}
TT_CLONES void add_affine_gradients(int64_t n, const float* g, const float* x, float center, float scale, float* dw,
                                    float* db) {
  affine_of(n, g, x, center, scale, dw, db);
}
TT_CLONES void add_affine_gradients(int64_t n, const double* g, const double* x, double center, double scale,
                                    double* dw, double* db) {
  affine_of(n, g, x, center, scale, dw, db);
}

}  // namespace tt::cpu::rows
