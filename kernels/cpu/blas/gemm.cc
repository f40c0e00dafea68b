#include "kernels/cpu/blas/gemm.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>

#include "engine/device/cancellation.h"
#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "engine/schema/half.h"
#include "kernels/cpu/blas/openblas_call.h"
#include "kernels/cpu/blas/routines.h"
#include "kernels/cpu/iteration/transpose.h"

// The register tile uses GCC's vector types, which may be wider than the baseline's registers.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace tt::cpu {
namespace {

// Computes a register tile of kRows x (kVectors vectors): adds the product of packed a (k x rows) and packed b (k x
// columns) to c.
template <typename T, int kBytes, int kRows, int kVectors>
[[gnu::always_inline]] inline void tile(int64_t k, const T* a, const T* b, T* c, int64_t ldc) {
  typedef T Vector __attribute__((vector_size(kBytes), aligned(alignof(T))));
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  Vector sums[kRows][kVectors] = {};
  for (int64_t p = 0; p < k; ++p, a += kRows, b += kVectors * kLanes) {
    Vector row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) row[v] = *reinterpret_cast<const Vector*>(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] += a[r] * row[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<Vector*>(c + r * ldc + v * kLanes) += sums[r][v];
  }
}

// The size and function of the register tile for this machine.
template <typename T>
struct Tile {
  int rows;
  int columns;
  void (*run)(int64_t k, const T* a, const T* b, T* c, int64_t ldc);
};

template <typename T>
[[gnu::target("arch=x86-64-v4")]] void tile_v4(int64_t k, const T* a, const T* b, T* c, int64_t ldc) {
  tile<T, 64, 8, 3>(k, a, b, c, ldc);
}
template <typename T>
[[gnu::target("arch=x86-64-v3")]] void tile_v3(int64_t k, const T* a, const T* b, T* c, int64_t ldc) {
  tile<T, 32, 4, 3>(k, a, b, c, ldc);
}
template <typename T>
void tile_baseline(int64_t k, const T* a, const T* b, T* c, int64_t ldc) {
  tile<T, 16, 4, 2>(k, a, b, c, ldc);
}

template <typename T>
Tile<T> choose_tile() {
  constexpr int kSize = sizeof(T);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    return {8, 3 * 64 / kSize, &tile_v4<T>};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {4, 3 * 32 / kSize, &tile_v3<T>};
  return {4, 2 * 16 / kSize, &tile_baseline<T>};
}

constexpr int64_t kBlockRows = 96;  // multiples of every tile's rows and columns
constexpr int64_t kBlockColumns = 192;
constexpr int64_t kBlockDepth = 256;  // one block of b takes 192 to 384 KiB of the L2 cache

// One thread's packed panels and sums, allocated at its first product and reused.
template <typename T>
struct Workspace {
  alignas(64) T a[kBlockRows * kBlockDepth];
  alignas(64) T b[kBlockDepth * kBlockColumns];
  alignas(64) T c[kBlockRows * kBlockColumns];

  static Workspace& of_thread() {
    thread_local std::unique_ptr<Workspace> workspace = std::make_unique_for_overwrite<Workspace>();
    return *workspace;
  }
};

// Whether elements are packed without conversion.
template <typename In, typename T>
inline constexpr bool kSameBits = std::is_same_v<In, T> && sizeof(T) >= 4;

// Packs `count` lines (rows of a, columns of b) of `depth` elements into panels of `width` lines. In a panel, element
// p of all lines is contiguous; missing lines are zero.
template <typename In, typename T>
void pack(const In* from, int64_t line_stride, int64_t depth_stride, int64_t count, int64_t depth, int width, T* to) {
  for (int64_t first = 0; first < count; first += width, to += width * depth) {
    const In* panel = from + first * line_stride;
    int lines = static_cast<int>(std::min<int64_t>(width, count - first));
    if (lines < width) std::fill(to, to + width * depth, T{});
    if (line_stride == 1) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int i = 0; i < lines; ++i) to[p * width + i] = static_cast<T>(panel[p * depth_stride + i]);
      }
    } else if (kSameBits<In, T> && depth_stride == 1) {
      using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
      transpose_plane(reinterpret_cast<const Bits*>(panel), reinterpret_cast<Bits*>(to),
                      {depth, lines, line_stride, width});
    } else {
      for (int i = 0; i < lines; ++i) {
        for (int64_t p = 0; p < depth; ++p) {
          to[p * width + i] = static_cast<T>(panel[i * line_stride + p * depth_stride]);
        }
      }
    }
  }
}

// Computes one block of the result, of at most kBlockRows x kBlockColumns.
template <typename In, typename T>
void block(const Gemm& g, const Tile<T>& tile, const In* a, const In* b, In* c, int64_t rows, int64_t columns) {
  Workspace<T>& w = Workspace<T>::of_thread();
  const int64_t padded_rows = (rows + tile.rows - 1) / tile.rows * tile.rows;
  const int64_t padded_columns = (columns + tile.columns - 1) / tile.columns * tile.columns;
  std::fill(w.c, w.c + padded_rows * padded_columns, T{});
  for (int64_t p = 0; p < g.k; p += kBlockDepth) {
    const int64_t depth = std::min(kBlockDepth, g.k - p);
    pack<In, T>(a + p * g.a.column_stride, g.a.row_stride, g.a.column_stride, rows, depth, tile.rows, w.a);
    pack<In, T>(b + p * g.b.row_stride, g.b.column_stride, g.b.row_stride, columns, depth, tile.columns, w.b);
    for (int64_t j = 0; j < padded_columns; j += tile.columns) {
      for (int64_t i = 0; i < padded_rows; i += tile.rows) {
        tile.run(depth, w.a + i * depth, w.b + j * depth, w.c + i * padded_columns + j, padded_columns);
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) c[i * g.n + j] = static_cast<In>(w.c[i * padded_columns + j]);
  }
}

template <typename In, typename T>
void run(const Gemm& g) {
  static const Tile<T> tile = choose_tile<T>();
  const int64_t row_blocks = (g.m + kBlockRows - 1) / kBlockRows;
  const int64_t column_blocks = (g.n + kBlockColumns - 1) / kBlockColumns;
  auto blocks = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t entry = task / (row_blocks * column_blocks);
      const int64_t i = task / column_blocks % row_blocks * kBlockRows, j = task % column_blocks * kBlockColumns;
      const In* a = static_cast<const In*>(g.a.data) + (g.a_offsets ? g.a_offsets[entry] : 0);
      const In* b = static_cast<const In*>(g.b.data) + (g.b_offsets ? g.b_offsets[entry] : 0);
      In* c = static_cast<In*>(g.c) + entry * g.m * g.n;
      block<In, T>(g, tile, a + i * g.a.row_stride, b + j * g.b.column_stride, c + i * g.n + j,
                   std::min(kBlockRows, g.m - i), std::min(kBlockColumns, g.n - j));
    }
  };
  const int64_t tasks = g.batch * row_blocks * column_blocks;
  // For less than a few microseconds of work, waking the pool costs more than it saves.
  const int64_t work = std::min(g.m, kBlockRows) * std::min(g.n, kBlockColumns) * std::max<int64_t>(g.k, 1);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 20) / work);
  if (tasks <= grain) {
    blocks(0, tasks);
  } else {
    parallel_for(tasks, grain, blocks);
  }
}

// An operand in BLAS's column-major form.
struct BlasOperand {
  char transposed;
  int leading_dimension;
};

// The transpose of `x` (row-major, rows x columns) as an operand of a column-major product. Empty if BLAS does not
// support the strides or sizes.
std::optional<BlasOperand> blas_operand(const Matrix& x, int64_t rows, int64_t columns) {
  const std::optional<Matrix> fits = leading(x, rows, columns);
  if (!fits) return std::nullopt;
  const bool row_major = fits->column_stride == 1;
  const int64_t step = std::max<int64_t>(row_major ? fits->row_stride : fits->column_stride, 1);
  if (std::max({rows, columns, step}) > INT_MAX) return std::nullopt;
  return BlasOperand{row_major ? 'N' : 'T', static_cast<int>(step)};
}

// Multiplies with OpenBLAS. Returns false, without side effects, if OpenBLAS does not support the operands.
template <typename T>
bool run_blas(const Gemm& g) {
  const std::optional<BlasOperand> a = blas_operand(g.a, g.m, g.k), b = blas_operand(g.b, g.k, g.n);
  if (!a || !b || g.k == 0) return false;
  constexpr double kLongestCall = 5e9;  // multiplications, about 0.3 s on one core: a call cannot be interrupted
  const double row_work = static_cast<double>(g.n) * static_cast<double>(g.k);
  const int64_t rows_per_call = std::max<int64_t>(1, static_cast<int64_t>(kLongestCall / row_work));
  const auto entries = [&](int64_t begin, int64_t end) {
    const OpenBlasCall allowed;
    if (!allowed) check_cancelled();  // throws
    for (int64_t i = begin; i < end; ++i) {
      const T* const left = static_cast<const T*>(g.a.data) + (g.a_offsets ? g.a_offsets[i] : 0);
      const T* const right = static_cast<const T*>(g.b.data) + (g.b_offsets ? g.b_offsets[i] : 0);
      T* const result = static_cast<T*>(g.c) + i * g.m * g.n;
      for (int64_t row = 0, rows; row < g.m; row += rows) {
        rows = std::min(rows_per_call, g.m - row);
        if (row > 0) check_cancelled();
        // The row-major c = a b is the column-major c^T = b^T a^T.
        lapack::gemm(b->transposed, a->transposed, static_cast<int>(g.n), static_cast<int>(rows), static_cast<int>(g.k),
                     right, b->leading_dimension, left + row * g.a.row_stride, a->leading_dimension, result + row * g.n,
                     static_cast<int>(g.n));
      }
    }
  };
  constexpr int64_t kOneThread = 64 * 64 * 64;  // OpenBLAS runs smaller products on one thread
  constexpr int64_t kGrain = 1 << 20;           // minimum multiplications per thread of the pool
  const double work = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (g.batch > 1 && work < kGrain) {
    parallel_for(g.batch, static_cast<int64_t>(kGrain / work) + 1, entries);
  } else if (work <= kOneThread) {
    entries(0, g.batch);
  } else {
    const PoolLease lease(work < kGrain ? 1 : num_threads());
    entries(0, g.batch);
  }
  return true;
}

}  // namespace

void tiled_gemm(const Gemm& g) {
  if (g.batch == 0 || g.m == 0 || g.n == 0) return;
  switch (g.dtype) {
    case DType::kFloat64: return run<double, double>(g);
    case DType::kFloat32: return run<float, float>(g);
    case DType::kFloat16: return run<Half, float>(g);
    case DType::kBFloat16: return run<BFloat16, float>(g);
    // Uses unsigned sums, whose overflow is defined; the bits equal those of signed sums.
    case DType::kUInt64:
    case DType::kInt64: return run<uint64_t, uint64_t>(g);
    case DType::kUInt32:
    case DType::kInt32: return run<uint32_t, uint32_t>(g);
    case DType::kUInt16:
    case DType::kInt16: return run<uint16_t, uint32_t>(g);
    case DType::kInt8:
    case DType::kUInt8: return run<uint8_t, uint32_t>(g);
    default: fail(ErrorKind::kRuntime, "matrix product is not implemented for ", name(g.dtype));
  }
}

void gemm(const Gemm& g) {
  if (g.batch == 0 || g.m == 0 || g.n == 0) return;
  if (g.dtype == DType::kFloat64 && run_blas<double>(g)) return;
  if (g.dtype == DType::kFloat32 && run_blas<float>(g)) return;
  tiled_gemm(g);
}

}  // namespace tt::cpu
