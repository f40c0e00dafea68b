#include "kernels/cuda/iteration/move.h"

#include "kernels/common/iteration/element.h"
#include "kernels/cuda/launch/layout.h"
#include "kernels/cuda/launch/vectors.h"

namespace tt::cuda {

namespace {

using Dims = absl::InlinedVector<Dim<2>, 6>;  // strides[0]: of the source; strides[1]: of the target

Layout<2> layout_of(const Dims& dims) {
  Sizes sizes, from, to;
  for (const Dim<2>& dim : dims) {
    sizes.push_back(dim.size);
    from.push_back(dim.strides[0]);
    to.push_back(dim.strides[1]);
  }
  return Layout<2>(sizes, {from, to});
}

int64_t count(const Dims& dims) {
  int64_t n = 1;
  for (const Dim<2>& dim : dims) n *= dim.size;
  return n;
}

template <typename T>
struct Move {
  Layout<2> layout;
  const T* from;
  T* to;
  TT_DEVICE void operator()(int64_t i) const {
    const Offsets<2> offsets = layout.offsets(i);
    to[offsets.at[1]] = from[offsets.at[0]];
  }
};

template <typename T>
void move_as(const Queue& queue, const Dims& dims, const void* from, void* to) {
  for_each(queue, count(dims), Move<T>{layout_of(dims), static_cast<const T*>(from), static_cast<T*>(to)});
}

// ---- Transposes: adjacent elements of the source are not adjacent in the target -----------------

// A thread transposes a tile of kSide by kSide elements: it reads 16 bytes of each of kSide rows and writes 16 bytes of
// each of kSide columns. Tiles are processed in blocks of kAlong tiles along the source's rows and kAcross tiles along
// the target's rows.
template <typename T>
struct Transpose {
  static constexpr int kSide = sizeof(T) == 1 ? 8 : 16 / sizeof(T);
  static constexpr int kAlong = 8, kAcross = 4;
  Layout<2> batches;
  int64_t rows, columns;                 // elements of a row are adjacent in the source, of a column in the target
  int64_t row_stride, column_stride;     // row stride of the source, column stride of the target
  FastDivmod tiles_along, tiles_across;  // number of blocks along the source's rows and along the target's rows
  bool aligned;
  const T* from;
  T* to;

  TT_DEVICE void operator()(int64_t i) const {
    const int64_t along = i % kAlong, across = i / kAlong % kAcross;
    auto group = static_cast<uint32_t>(i / (kAlong * kAcross));
    const int64_t column = (tiles_along.divmod(group) * kAlong + along) * kSide;
    const int64_t row = (tiles_across.divmod(group) * kAcross + across) * kSide;
    if (row >= rows || column >= columns) return;
    const Offsets<2> batch = batches.offsets(group);
    const T* source = from + batch.at[0] + row * row_stride + column;
    T* target = to + batch.at[1] + column * column_stride + row;
    if (aligned && row + kSide <= rows && column + kSide <= columns) return transpose_tile(source, target);
    for (int r = 0; r < kSide && row + r < rows; ++r) {
      for (int c = 0; c < kSide && column + c < columns; ++c)
        target[c * column_stride + r] = source[r * row_stride + c];
    }
  }
  TT_DEVICE void transpose_tile(const T* source, T* target) const {
    Vector<T, kSide> tile[kSide];
    for (int r = 0; r < kSide; ++r) tile[r] = load_vector<T, kSide>(source + r * row_stride);
    for (int c = 0; c < kSide; ++c) {
      Vector<T, kSide> column;
      for (int r = 0; r < kSide; ++r) column.at[r] = tile[r].at[c];
      store_vector(target + c * column_stride, column);
    }
  }
};

template <typename T>
bool transpose(const Queue& queue, Dims dims, const T* from, T* to) {
  constexpr int64_t kSide = Transpose<T>::kSide;
  int row = -1, column = -1;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    if (dims[d].strides[0] == 1 && dims[d].strides[1] != 1) column = d;
    if (dims[d].strides[1] == 1 && dims[d].strides[0] != 1) row = d;
  }
  if (row < 0 || column < 0 || dims[row].size < kSide || dims[column].size < kSide) return false;
  const Dim<2> rows = dims[row], columns = dims[column];
  dims.erase(dims.begin() + std::max(row, column));
  dims.erase(dims.begin() + std::min(row, column));
  const auto tiles = [](int64_t n, int64_t each) { return (n + kSide * each - 1) / (kSide * each); };
  const int64_t along = tiles(columns.size, Transpose<T>::kAlong), across = tiles(rows.size, Transpose<T>::kAcross);
  const int64_t groups = along * across * count(dims);
  if (groups > std::numeric_limits<int32_t>::max()) return false;
  bool aligned = is_aligned(from) && is_aligned(to) && rows.strides[0] % kSide == 0 && columns.strides[1] % kSide == 0;
  for (const Dim<2>& dim : dims) aligned = aligned && dim.strides[0] % kSide == 0 && dim.strides[1] % kSide == 0;
  for_each(queue, groups * Transpose<T>::kAlong * Transpose<T>::kAcross,
           Transpose<T>{layout_of(dims), rows.size, columns.size, rows.strides[0], columns.strides[1],
                        FastDivmod(static_cast<uint32_t>(along)), FastDivmod(static_cast<uint32_t>(across)), aligned,
                        from, to});
  return true;
}

// ---- Rows: copied in the widest possible words -------------------------------------------------

// Returns the number of elements, of `size` bytes each, that are copied as one word of at most 16 bytes. Rows of the
// source and of the target start and end at boundaries of such words.
int64_t elements_of_word(const Dims& dims, size_t size, const void* from, const void* to) {
  if (dims.empty() || dims.back().strides[0] != 1 || dims.back().strides[1] != 1) return 1;
  const auto addresses = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
  int64_t together = dims.back().size | static_cast<int64_t>(addresses / size);
  for (size_t d = 0; d + 1 < dims.size(); ++d) together |= dims[d].strides[0] | dims[d].strides[1];
  int64_t elements = 16 / static_cast<int64_t>(size);
  while (elements > 1 && together % elements != 0) elements /= 2;
  return elements;
}

void move_words(const Queue& queue, Dims dims, size_t size, const void* from, void* to) {
  const int64_t elements = elements_of_word(dims, size, from, to);
  if (elements > 1) {
    dims.back().size /= elements;
    for (size_t d = 0; d + 1 < dims.size(); ++d) {
      for (int64_t& stride : dims[d].strides) stride /= elements;
    }
  }
  switch (size * static_cast<size_t>(elements)) {
    case 1: return move_as<uint8_t>(queue, dims, from, to);
    case 2: return move_as<uint16_t>(queue, dims, from, to);
    case 4: return move_as<uint32_t>(queue, dims, from, to);
    case 8: return move_as<uint64_t>(queue, dims, from, to);
    default: return move_as<Vector<uint64_t>>(queue, dims, from, to);
  }
}

// Copies whole 16-byte words by a kernel: the driver's copies reached only two thirds of its bandwidth (docs/gpu.md).
void move_bytes(const Queue& queue, const void* from, void* to, size_t bytes) {
  if (bytes % sizeof(Vector<uint64_t>) != 0 || !is_aligned(from) || !is_aligned(to)) return queue.copy(to, from, bytes);
  const auto* words = static_cast<const uint64_t*>(from);
  auto* target = static_cast<uint64_t*>(to);
  for_each(queue, static_cast<int64_t>(bytes / sizeof(Vector<uint64_t>)),
           [=] TT_DEVICE(int64_t i) { store_vector(target + 2 * i, load_vector(words + 2 * i)); });
}

}  // namespace

void move_elements(const Queue& queue, const Tensor& src, const Tensor& dst) {
  const Sizes strides = broadcast_strides(src.sizes(), src.strides(), dst.sizes());
  const Dims dims = merged_dims<2>(dst.sizes(), {strides, dst.strides()});
  const size_t size = item_size(dst.dtype());
  if (layout_of(dims).is_linear())
    return move_bytes(queue, src.data(), dst.data(), static_cast<size_t>(dst.numel()) * size);
  with_bits(dst.dtype(), [&]<typename T>(std::type_identity<T>) {
    if (!transpose(queue, dims, src.data_as<const T>(), dst.data_as<T>())) {
      move_words(queue, dims, size, src.data(), dst.data());
    }
  });
}

}  // namespace tt::cuda
