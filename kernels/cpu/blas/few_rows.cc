#include "kernels/cpu/blas/few_rows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/cpu/blas/packed_weights.h"
#include "kernels/cpu/iteration/has_avx512.h"
#include "kernels/cpu/iteration/transpose_avx512.h"

namespace tt::cpu {
namespace {

constexpr int64_t kMaxRows = 64;
constexpr int64_t kMinDepth = 64;
constexpr int64_t kMinWeights = 1 << 16;
constexpr int64_t kThreadWeights = 1 << 16;  // minimum number of weights per thread
constexpr int64_t kLanes = 16;               // columns of a panel
constexpr int64_t kPassRows = 8;             // rows whose sums stay in registers
constexpr int64_t kMaxPanels = 4;            // panels that are multiplied together
constexpr int64_t kPackedDepth = 1024;  // rows of b that are multiplied together, so that they stay in the L2 cache
constexpr int64_t kPlainDepth = 256;    // the same of a b that is packed for each call

#define TT_V4 [[gnu::target("arch=x86-64-v4")]]

// A tile of c, and a part of the products that it is the sum of.
struct Part {
  int64_t depth;
  bool first, last;
  const float* x;
  int64_t x_step;
  const float* w;  // panels of 16 columns: element (p, j) of one at w + p * 16 + j
  int64_t w_step;  // between panels
  float* c;
  int64_t c_step;
  __mmask16 tail;  // the columns of the last panel
  const float* bias;
  const float* added;  // of c's strides
  const char* next;    // what is multiplied next of the first panel, and is fetched meanwhile
  int64_t next_step;   // bytes that are fetched per element of depth
};

template <int kRows, int kPanels>
TT_V4 void tile(const Part& t) {
  __m512 sums[kRows][kPanels];
  const auto mask = [&](int v) -> __mmask16 { return v == kPanels - 1 ? t.tail : static_cast<__mmask16>(0xffff); };
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) {
      sums[r][v] = t.first ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask(v), t.c + r * t.c_step + v * kLanes);
    }
  }
  const float *x = t.x, *w = t.w;
  const char* next = t.next;
  for (int64_t p = 0; p < t.depth; ++p, ++x, w += kLanes, next += t.next_step) {
    __m512 row[kPanels];
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) {
      row[v] = _mm512_loadu_ps(w + v * t.w_step);
      _mm_prefetch(next + v * t.w_step * static_cast<int64_t>(sizeof(float)), _MM_HINT_T1);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(x[r * t.x_step]);
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) sums[r][v] = _mm512_fmadd_ps(factor, row[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) {
      __m512 sum = sums[r][v];
      if (t.last && t.bias) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask(v), t.bias + v * kLanes));
      if (t.last && t.added) {
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask(v), t.added + r * t.c_step + v * kLanes));
      }
      _mm512_mask_storeu_ps(t.c + r * t.c_step + v * kLanes, mask(v), sum);
    }
  }
}

using Tile = void (*)(const Part&);

Tile tile_of(int64_t rows, int64_t panels) {
  static constexpr Tile kOne[] = {tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>,
                                  tile<5, 1>, tile<6, 1>, tile<7, 1>, tile<8, 1>};
  static constexpr Tile kTwo[] = {tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>,
                                  tile<5, 2>, tile<6, 2>, tile<7, 2>, tile<8, 2>};
  static constexpr Tile kFour[] = {tile<1, 4>, tile<2, 4>, tile<3, 4>, tile<4, 4>};
  return panels == 4 ? kFour[rows - 1] : panels == 2 ? kTwo[rows - 1] : kOne[rows - 1];
}

// Copies rows [0, depth) and columns [0, columns <= 16) of b to a panel. Missing columns are zero.
TT_V4 void pack_panel(const Matrix& b, const float* from, int64_t columns, int64_t depth, float* to) {
  const auto lanes = static_cast<__mmask16>((1 << columns) - 1);
  if (b.column_stride == 1) {
    for (int64_t p = 0; p < depth; ++p) {
      _mm512_storeu_ps(to + p * kLanes, _mm512_maskz_loadu_ps(lanes, from + p * b.row_stride));
    }
    return;
  }
  for (int64_t p = 0; p < depth; p += kLanes) {
    const int64_t count = std::min(kLanes, depth - p);
    const auto mask = static_cast<__mmask16>((1 << count) - 1);
    __m512i r[kLanes];
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j) {
      r[j] = j < columns ? _mm512_maskz_loadu_epi32(mask, from + j * b.column_stride + p) : _mm512_setzero_si512();
    }
    transpose(r);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (i < count) _mm512_storeu_si512(to + (p + i) * kLanes, r[i]);
    }
  }
}

int64_t count_panels(int64_t n) { return (n + kLanes - 1) / kLanes; }

// The product, by groups of panels of b: the columns of c that are multiplied together.
class Columns {
 public:
  Columns(const Gemm& g, const float* bias, const float* added)
      : g_(g), bias_(bias), added_(added), passes_((g.m + kPassRows - 1) / kPassRows) {}

  // Panels that are multiplied together: few rows need many, so that enough sums do not depend on each other.
  int64_t panels_together() const { return (g_.m + passes_ - 1) / passes_ <= 4 ? kMaxPanels : 2; }

  // Multiplies panels [first, first + count) of a packed b; `count` is 1, 2 or 4. With `has_next` the panels that
  // follow are multiplied next, and are fetched meanwhile.
  void multiply_packed(const float* packed, int64_t first, int64_t count, bool has_next) const {
    const int64_t step = g_.k * kLanes;
    for (int64_t p = 0; p < g_.k; p += kPackedDepth) {
      const int64_t depth = std::min(kPackedDepth, g_.k - p);
      const float* const here = packed + first * step + p * kLanes;
      const float* next = here;
      if (p + depth < g_.k) {
        next += depth * kLanes;
      } else if (has_next) {
        next = packed + (first + count) * step;
      }
      multiply(here, step, first, count, p, depth, next);
    }
  }
  // The same of b as it is, of which parts are packed one after the other.
  void multiply_plain(int64_t first, int64_t count) const {
    struct Panels {
      alignas(64) float values[kMaxPanels * kPlainDepth * kLanes];
    };
    // One thread's panels, allocated at its first product and reused.
    thread_local const std::unique_ptr<Panels> panels = std::make_unique_for_overwrite<Panels>();
    const auto* const b = static_cast<const float*>(g_.b.data);
    for (int64_t p = 0; p < g_.k; p += kPlainDepth) {
      const int64_t depth = std::min(kPlainDepth, g_.k - p), step = depth * kLanes;
      for (int64_t v = 0; v < count; ++v) {
        const int64_t column = (first + v) * kLanes;
        const float* const from = b + column * g_.b.column_stride + p * g_.b.row_stride;
        pack_panel(g_.b, from, std::min(kLanes, g_.n - column), depth, panels->values + v * step);
      }
      multiply(panels->values, step, first, count, p, depth, panels->values);
    }
  }

 private:
  void multiply(const float* w, int64_t w_step, int64_t first, int64_t count, int64_t p, int64_t depth,
                const float* next) const {
    const int64_t column = first * kLanes, width = std::min(kLanes, g_.n - column - (count - 1) * kLanes);
    const auto tail = static_cast<__mmask16>((1 << width) - 1);
    // The first two passes fetch a half each of the next panels.
    const int64_t next_step = static_cast<int64_t>(kLanes * sizeof(float)) / std::min<int64_t>(passes_, 2);
    for (int64_t pass = 0; pass < passes_; ++pass) {
      const int64_t row = g_.m * pass / passes_, rows = g_.m * (pass + 1) / passes_ - row;
      const int64_t at = row * g_.n + column;
      const auto* const x = static_cast<const float*>(g_.a.data) + row * g_.a.row_stride + p;
      const char* const fetched = reinterpret_cast<const char*>(next) + (pass == 1 ? depth * next_step : 0);
      const Part part{depth,
                      p == 0,
                      p + depth == g_.k,
                      x,
                      g_.a.row_stride,
                      w,
                      w_step,
                      static_cast<float*>(g_.c) + at,
                      g_.n,
                      tail,
                      bias_ ? bias_ + column : nullptr,
                      added_ ? added_ + at : nullptr,
                      fetched,
                      pass > 1 ? 0 : next_step};
      tile_of(rows, count)(part);
    }
  }

  const Gemm& g_;
  const float *bias_, *added_;
  const int64_t passes_;
};

// The layout of b, and that of its packed copy, whose panels follow each other.
struct Layouts {
  explicit Layouts(const Gemm& g)
      : plain({g.k, g.n}, kFloat32, Dims{g.b.row_stride, g.b.column_stride}),
        panels({count_panels(g.n), g.k, kLanes}, kFloat32, Dims{g.k * kLanes, kLanes, 1}) {}
  using Dims = dnnl::memory::dims;
  static constexpr auto kFloat32 = dnnl::memory::data_type::f32;
  dnnl::memory::desc plain, panels;
};

// Returns the packed copy of b, or an undefined tensor if it is used for the first time or there is no memory for one.
Tensor packed_panels(const Gemm& g, const Tensor& weights) {
  const Layouts layouts(g);
  if (!used_before(weights, layouts.plain)) return Tensor();
  if (Tensor kept = find_packed(weights, layouts.plain, layouts.panels)) return kept;
  drop_packed(weights, layouts.plain);
  const int64_t panels = count_panels(g.n);
  const auto pack = [&](const Tensor& copy) {
    auto* const to = copy.data_as<float>();
    parallel_for(panels, kThreadWeights / (g.k * kLanes) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t column = panel * kLanes;
        const auto* const from = static_cast<const float*>(g.b.data) + column * g.b.column_stride;
        pack_panel(g.b, from, std::min(kLanes, g.n - column), g.k, to + panel * g.k * kLanes);
      }
    });
  };
  try {
    return packed_by(weights, layouts.plain, layouts.panels, pack, true);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) throw;
    return Tensor();
  }
}

#undef TT_V4

// Whether few_rows() multiplies by the b of `g`, with some number of rows.
bool supports_weights(const Gemm& g) {
  if (g.dtype != DType::kFloat32 || g.batch != 1 || g.a_offsets || g.b_offsets) return false;
  if (g.k < kMinDepth || g.n < kLanes || g.n * g.k < kMinWeights) return false;
  const std::optional<Matrix> b = leading(g.b, g.k, g.n);
  return b && b->row_stride == g.b.row_stride && b->column_stride == g.b.column_stride && has_avx512();
}

}  // namespace

bool is_few_rows(const Gemm& g) { return g.m >= 2 && g.m <= kMaxRows && g.a.column_stride == 1 && supports_weights(g); }

bool has_panels(const Gemm& g, const Tensor& weights) {
  if (!supports_weights(g)) return false;
  const Layouts layouts(g);
  return bool{find_packed(weights, layouts.plain, layouts.panels)};
}

void few_rows(const Gemm& g, const float* bias, const float* added, const Tensor& weights) {
  const Tensor packed = packed_panels(g, weights);
  const Columns columns(g, bias, added);
  const int64_t panels = count_panels(g.n), together = columns.panels_together();
  const int64_t groups = (panels + together - 1) / together;
  parallel_for(groups, kThreadWeights / (g.k * kLanes * together) + 1, [&](int64_t begin, int64_t end) {
    const int64_t last = std::min(end * together, panels);
    for (int64_t panel = begin * together; panel < last;) {
      int64_t count = together;
      while (count > last - panel) count /= 2;
      if (packed) {
        columns.multiply_packed(packed.data_as<const float>(), panel, count, panel + count < last);
      } else {
        columns.multiply_plain(panel, count);
      }
      panel += count;
    }
  });
}

}  // namespace tt::cpu

#else

namespace tt::cpu {

bool is_few_rows(const Gemm&) { return false; }
bool has_panels(const Gemm&, const Tensor&) { return false; }
void few_rows(const Gemm&, const float*, const float*, const Tensor&) {}

}  // namespace tt::cpu

#endif
