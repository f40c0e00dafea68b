#include "kernels/cpu/iteration/transpose.h"

#include <algorithm>
#include <cstring>

#include "engine/device/parallel.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

namespace {

// Rows per strip: with elements of four bytes, a strip reads whole cache lines.
constexpr int64_t kStrip = 16;
constexpr int64_t kMicro = 8;
constexpr int64_t kMinElements = 16 * 16;

// Transposes element by element, for edges and narrow planes.
template <typename T>
[[gnu::always_inline]] inline void transpose_edge(const T* from, T* to, const Plane& p, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[r * p.to_row + c] = from[c * p.from_column + r];
  }
}

template <typename T>
using Vector [[gnu::vector_size(kMicro * sizeof(T))]] = T;

// Transposes eight by eight elements in registers: exchanges single elements, then pairs, then halves.
template <typename T>
[[gnu::always_inline]] inline void transpose_micro(const T* from, T* to, const Plane& p) {
  Vector<T> a[kMicro], b[kMicro];
#pragma GCC unroll 8
  for (int i = 0; i < kMicro; ++i) std::memcpy(&a[i], from + i * p.from_column, sizeof(a[i]));
#pragma GCC unroll 4
  for (int i = 0; i < kMicro; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kMicro; i += 4) {
    for (int j = i; j < i + 2; ++j) {
      a[j] = __builtin_shufflevector(b[j], b[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      a[j + 2] = __builtin_shufflevector(b[j], b[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    b[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    b[i + 4] = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kMicro; ++i) std::memcpy(to + i * p.to_row, &b[i], sizeof(b[i]));
}

// Interleaves three columns, such as the channels of an image whose channels become its last dimension. Returns the
// number of rows that it has written: a multiple of kMicro.
template <typename T>
[[gnu::always_inline]] inline int64_t interleave_three(const T* from, T* to, const Plane& p, int64_t rows) {
  int64_t r = 0;
  for (; r + kMicro <= rows; r += kMicro) {
    Vector<T> a, b, c;
    std::memcpy(&a, from + r, sizeof(a));
    std::memcpy(&b, from + p.from_column + r, sizeof(b));
    std::memcpy(&c, from + 2 * p.from_column + r, sizeof(c));
    const Vector<T> ab[] = {__builtin_shufflevector(a, b, 0, 8, 0, 1, 9, 0, 2, 10),
                            __builtin_shufflevector(a, b, 0, 3, 11, 0, 4, 12, 0, 5),
                            __builtin_shufflevector(a, b, 13, 0, 6, 14, 0, 7, 15, 0)};
    const Vector<T> all[] = {__builtin_shufflevector(ab[0], c, 0, 1, 8, 3, 4, 9, 6, 7),
                             __builtin_shufflevector(ab[1], c, 10, 1, 2, 11, 4, 5, 12, 7),
                             __builtin_shufflevector(ab[2], c, 0, 13, 2, 3, 14, 5, 6, 15)};
    std::memcpy(to + r * 3, all, sizeof(all));
  }
  return r;
}

template <typename T>
[[gnu::always_inline]] inline void transpose_strip(const T* from, T* to, const Plane& p, int64_t rows) {
  if (p.columns == 3 && p.to_row == 3) {
    const int64_t done = interleave_three(from, to, p, rows);
    return transpose_edge(from + done, to + done * 3, p, rows - done, 3);
  }
  const int64_t whole_rows = rows / kMicro * kMicro, whole_columns = p.columns / kMicro * kMicro;
  for (int64_t c = 0; c < whole_columns; c += kMicro) {
    for (int64_t r = 0; r < whole_rows; r += kMicro)
      transpose_micro(from + c * p.from_column + r, to + r * p.to_row + c, p);
  }
  transpose_edge(from + whole_columns * p.from_column, to + whole_columns, p, whole_rows, p.columns - whole_columns);
  transpose_edge(from + whole_rows, to + whole_rows * p.to_row, p, rows - whole_rows, p.columns);
}

TT_CLONES void strip(const uint8_t* from, uint8_t* to, const Plane& p, int64_t rows) {
  transpose_strip(from, to, p, rows);
}
TT_CLONES void strip(const uint16_t* from, uint16_t* to, const Plane& p, int64_t rows) {
  transpose_strip(from, to, p, rows);
}
TT_CLONES void strip(const uint32_t* from, uint32_t* to, const Plane& p, int64_t rows) {
  transpose_strip(from, to, p, rows);
}
TT_CLONES void strip(const uint64_t* from, uint64_t* to, const Plane& p, int64_t rows) {
  transpose_strip(from, to, p, rows);
}
TT_CLONES void strip(const Bits16* from, Bits16* to, const Plane& p, int64_t rows) {
  transpose_edge(from, to, p, rows, p.columns);
}

}  // namespace

void transpose_plane(const uint32_t* from, uint32_t* to, const Plane& p) { strip(from, to, p, p.rows); }
void transpose_plane(const uint64_t* from, uint64_t* to, const Plane& p) { strip(from, to, p, p.rows); }

bool transpose(const Space& space, const Access& from, const Access& to) {
  const size_t dims = space.sizes.size();
  const auto is_straight = [](int64_t stride) { return stride == 1 || stride == -1; };
  if (from.dtype != to.dtype || dims < 2 || to.strides.back() != 1 || is_straight(from.strides.back())) return false;
  const auto straight = std::find_if(from.strides.begin(), from.strides.end(), is_straight);
  if (straight == from.strides.end()) return false;
  const size_t row_dim = straight - from.strides.begin();
  Plane plane{space.sizes[row_dim], space.sizes.back(), from.strides.back(), to.strides[row_dim]};
  if (plane.rows * plane.columns < kMinElements) return false;
  // If the stride of the rows is negative in the source, the source is read from its lowest address, and the target's
  // rows are written from the last to the first.
  const int64_t last_row = *straight < 0 ? plane.rows - 1 : 0;
  const int64_t first_source = -last_row, first_target = last_row * plane.to_row;
  if (*straight < 0) plane.to_row = -plane.to_row;

  // Cache lines of the source that straddle two strips are read twice. A plane with few columns is divided into taller
  // strips, so that there are fewer such lines.
  const int64_t height = plane.columns < kMicro ? 512 : kStrip;
  const int64_t strips = (plane.rows + height - 1) / height;
  const int64_t planes = space.numel / (plane.rows * plane.columns);
  const int64_t strip_elements = std::min(plane.rows, height) * plane.columns;
  with_bits(from.dtype, [&]<typename T>(std::type_identity<T>) {
    parallel_for(planes * strips, std::max<int64_t>(1, (32 << 10) / strip_elements), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t rest = i / strips;
        const int64_t row = i % strips * height;
        int64_t source = first_source + row, target = first_target + row * plane.to_row;
        for (size_t d = dims - 1; d-- > 0;) {
          if (d == row_dim) continue;
          source += rest % space.sizes[d] * from.strides[d];
          target += rest % space.sizes[d] * to.strides[d];
          rest /= space.sizes[d];
        }
        strip(reinterpret_cast<const T*>(from.data) + source, reinterpret_cast<T*>(to.data) + target, plane,
              std::min(height, plane.rows - row));
      }
    });
  });
  return true;
}

}  // namespace tt::cpu
