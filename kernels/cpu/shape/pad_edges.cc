// Padding with elements of the input, and its gradient, a row of the last dimension at a time.
#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "engine/device/parallel.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

constexpr int64_t kGrain = 32 * 1024;  // minimum elements per task of the pool

// One padded dimension: where its elements come from.
struct Edge {
  enum class Mode { kReflect, kReplicate, kCircular };

  Mode mode;
  int64_t size, padded, before;  // elements, elements with padding, and how many of the latter come first
  int64_t first, kept;           // the input's elements that are not cropped
  int64_t begin, end;            // padded elements that are copies of these, in order

  Edge(Mode m, int64_t n, int64_t pad_before, int64_t pad_after)
      : mode(m),
        size(n),
        padded(n + pad_before + pad_after),
        before(pad_before),
        first(std::max<int64_t>(-pad_before, 0)),
        kept(n - first + std::min<int64_t>(pad_after, 0)),
        begin(std::max<int64_t>(pad_before, 0)),
        end(begin + kept) {}

  // The input's element of a padded element.
  int64_t source(int64_t at) const {
    int64_t from = at - before;
    switch (mode) {
      case Mode::kReflect: from = std::abs(from); return from < size ? from : 2 * (size - 1) - from;
      case Mode::kReplicate: return std::clamp<int64_t>(from, 0, size - 1);
      case Mode::kCircular: return from < first ? from + kept : from >= first + kept ? from - kept : from;
    }
    return 0;  // not reached
  }
};

// Tensors (slices, padded dimensions): the input has the dimensions' sizes, the padded tensor those with padding.
struct Slices {
  absl::InlinedVector<Edge, 4> edges;  // the first dimension first
  int64_t slices = 1;
  int64_t rows = 1;                           // per padded slice
  int64_t row_size = 1, padded_row_size = 1;  // of the last dimension
  int64_t slice_size = 1;                     // elements per slice of the input

  Slices(SizesView sizes, SizesView pad, std::string_view mode) {
    const Edge::Mode m = mode == "reflect"     ? Edge::Mode::kReflect
                         : mode == "replicate" ? Edge::Mode::kReplicate
                                               : Edge::Mode::kCircular;
    const size_t dims = pad.size() / 2, outer = sizes.size() - dims;
    for (size_t d = 0; d < outer; ++d) slices *= sizes[d];
    for (size_t d = outer; d < sizes.size(); ++d) {
      const size_t i = sizes.size() - 1 - d;
      edges.emplace_back(m, sizes[d], pad[2 * i], pad[2 * i + 1]);
      slice_size *= sizes[d];
      if (i > 0) rows *= edges.back().padded;
    }
    row_size = edges.back().size;
    padded_row_size = edges.back().padded;
  }

  // Calls row(offset of the input's row, padded row) for padded rows in [begin, end), in order, of all slices.
  template <typename Row>
  void for_rows(int64_t begin, int64_t end, Row&& row) const {
    const size_t outer = edges.size() - 1;
    absl::InlinedVector<int64_t, 4> at(outer);
    int64_t rest = begin % rows;
    for (size_t d = outer; d-- > 0;) {
      at[d] = rest % edges[d].padded;
      rest /= edges[d].padded;
    }
    for (int64_t r = begin; r < end; ++r) {
      int64_t from = r / rows;
      for (size_t d = 0; d < outer; ++d) from = from * edges[d].size + edges[d].source(at[d]);
      row(from * row_size, r);
      for (size_t d = outer; d-- > 0;) {
        if (++at[d] < edges[d].padded) break;
        at[d] = 0;
      }
    }
  }
};

// Pads rows of the last dimension. The sources of a narrow padding are found once, not per row.
class RowPadding {
 public:
  explicit RowPadding(const Edge& edge) : edge_(edge), narrow_(edge.begin + edge.padded - edge.end <= kNarrow) {
    if (!narrow_) return;
    int32_t count = 0;
    for (int64_t i = 0; i < edge.begin; ++i) sources_[count++] = edge.source(i);
    for (int64_t i = edge.end; i < edge.padded; ++i) sources_[count++] = edge.source(i);
  }
  template <typename T>
  void pad(const T* from, T* to) const {
    if (edge_.kept > 0) std::memcpy(to + edge_.begin, from + edge_.first, edge_.kept * sizeof(T));
    if (narrow_) {
      T* const after = to + (edge_.end - edge_.begin);
      for (int64_t i = 0; i < edge_.begin; ++i) to[i] = from[sources_[i]];
      for (int64_t i = edge_.begin; i < edge_.begin + edge_.padded - edge_.end; ++i) after[i] = from[sources_[i]];
      return;
    }
    for (int64_t i = 0; i < edge_.begin; ++i) to[i] = from[edge_.source(i)];
    for (int64_t i = edge_.end; i < edge_.padded; ++i) to[i] = from[edge_.source(i)];
  }

 private:
  static constexpr int64_t kNarrow = 32;  // padded elements

  const Edge& edge_;
  const bool narrow_;
  int64_t sources_[kNarrow];
};

template <typename T>
void add_row(const T* from, T* to, const Edge& edge) {
  const auto add = [&](int64_t at, int64_t i) { to[at] = to[at] + from[i]; };
  for (int64_t i = 0; i < edge.begin; ++i) add(edge.source(i), i);
  T* const same = to + edge.first - edge.begin;
  for (int64_t i = edge.begin; i < edge.end; ++i) same[i] = same[i] + from[i];
  for (int64_t i = edge.end; i < edge.padded; ++i) add(edge.source(i), i);
}

}  // namespace

void pad_edges_forward(const Tensor& input, absl::Span<const int64_t> pad, std::string_view mode, Tensor& out) {
  if (out.numel() == 0) return;
  if (pad.empty()) return copy(input, out);
  const Tensor source = contiguous(input);
  const Slices slices(input.sizes(), pad, mode);
  const RowPadding padding(slices.edges.back());
  const int64_t grain = std::max<int64_t>(1, kGrain / slices.padded_row_size);
  with_bits(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    parallel_for(slices.slices * slices.rows, grain, [&](int64_t begin, int64_t end) {
      slices.for_rows(begin, end, [&](int64_t from, int64_t row) {
        padding.pad(source.data_as<T>() + from, out.data_as<T>() + row * slices.padded_row_size);
      });
    });
  });
}

void pad_edges_backward(const Tensor& grad, absl::Span<const int64_t> size, absl::Span<const int64_t> pad,
                        std::string_view mode, Tensor& out) {
  if (out.numel() == 0) return;
  if (pad.empty()) return copy(grad, out);
  const Slices slices(size, pad, mode);
  const Tensor source = as_accumulate_type(grad);
  AccumulateBuffer sums(out);
  const auto add = [&]<typename T>(std::type_identity<T>) {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(slices.rows * slices.padded_row_size, 1));
    parallel_for(slices.slices, grain, [&](int64_t begin, int64_t end) {  // the rows of a slice are added in order
      T* const to = sums.template data<T>();
      std::fill(to + begin * slices.slice_size, to + end * slices.slice_size, T(0));
      if (slices.padded_row_size == 0) return;
      slices.for_rows(begin * slices.rows, end * slices.rows, [&](int64_t at, int64_t row) {
        add_row(source.data_as<T>() + row * slices.padded_row_size, to + at, slices.edges.back());
      });
    });
  };
  switch (sums.tensor().dtype()) {
    case DType::kFloat32: add(std::type_identity<float>()); break;
    case DType::kFloat64: add(std::type_identity<double>()); break;
    case DType::kComplex64: add(std::type_identity<Complex<float>>()); break;
    case DType::kComplex128: add(std::type_identity<Complex<double>>()); break;
    default: fail(ErrorKind::kNotImplemented, "not implemented for ", name(grad.dtype()));
  }
  sums.copy_to_output();
}

}  // namespace tt::cpu
