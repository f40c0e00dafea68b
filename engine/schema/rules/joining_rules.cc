// Rules for operators that join tensors or rearrange their elements.
#include <algorithm>

#include "engine/schema/checked_math.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::shape_rules {
namespace {

const TensorMeta& meta(const Arg& a) { return *a.tensor; }
size_t at(int64_t dim) { return static_cast<size_t>(dim); }

// Returns the distance of a diagonal from the main one. The limit keeps the number of elements of a square matrix
// within 64 bits.
SymInt distance_from_main(SymInt diagonal) {
  constexpr int64_t kMaxDiagonal = int64_t{1} << 31;
  check(is_within(-1 - diagonal, kMaxDiagonal - 2) && is_within(diagonal, kMaxDiagonal - 1),
        "expected a diagonal less than 2^31 away from the main one, got ", diagonal);
  return larger(diagonal, -diagonal);
}

}  // namespace

Sizes cat(const Arg& tensors, int64_t dim) {
  auto list = tensors.list();
  check(ErrorKind::kValue, !list.empty(), "expected a non-empty list of Tensors");
  const TensorMeta* first = nullptr;
  // PyTorch's legacy rule: an empty vector is ignored. Among vectors alone it changes nothing.
  const bool are_vectors = std::all_of(list.begin(), list.end(), [](const TensorMeta* t) { return t->dim() == 1; });
  const auto is_skipped = [&](const TensorMeta& t) { return !are_vectors && t.dim() == 1 && t.sizes[0] == 0; };
  for (size_t i = 0; i < list.size(); ++i) {
    const TensorMeta* t = list[i];
    check(t->dim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    if (!first && !is_skipped(*t)) first = t;
  }
  if (!first) return {0};
  int64_t d = wrap_dim(dim, first->dim());
  Sizes result = first->sizes;
  result[at(d)] = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const Sizes& sizes = list[i]->sizes;
    if (is_skipped(*list[i])) continue;
    check(sizes.size() == result.size(), "Tensors must have same number of dimensions: got ", result.size(), " and ",
          sizes.size());
    for (size_t k = 0; k < sizes.size(); ++k) {
      check(k == at(d) || sizes[k] == result[k], "Sizes of tensors must match except in dimension ", d,
            ". Expected size ", result[k], " but got size ", sizes[k], " for tensor number ", i, " in the list.");
    }
    result[at(d)] = checked_add(result[at(d)], sizes[at(d)]);
  }
  return result;
}

Sizes stack(const Arg& tensors, int64_t dim) {
  auto list = tensors.list();
  check(!list.empty(), "stack expects a non-empty TensorList");
  for (size_t i = 1; i < list.size(); ++i) {
    check(list[i]->sizes == list[0]->sizes, "stack expects each tensor to be equal size, but got ", list[0]->sizes,
          " at entry 0 and ", list[i]->sizes, " at entry ", i);
  }
  Sizes result = list[0]->sizes;
  int64_t d = wrap_dim(dim, list[0]->dim() + 1);
  result.insert(result.begin() + d, static_cast<int64_t>(list.size()));
  return result;
}

namespace {

// The shape of the concatenation after each tensor is extended to n dimensions; vectors become rows.
Sizes joined(const Arg& tensors, size_t n, int64_t dim) {
  auto list = tensors.list();
  check(!list.empty(), "expected a non-empty list of Tensors");
  std::vector<TensorMeta> metas;
  for (const TensorMeta* t : list) {
    TensorMeta& m = metas.emplace_back(*t);
    while (m.sizes.size() < n) m.sizes.insert(m.sizes.begin(), 1);
  }
  std::vector<const TensorMeta*> pointers;
  pointers.reserve(metas.size());
  for (const TensorMeta& m : metas) pointers.push_back(&m);
  return cat(Arg(absl::Span<const TensorMeta* const>(pointers)), dim);
}

}  // namespace

Sizes hstack(const Arg& tensors) {
  check(!tensors.list().empty(), "hstack expects a non-empty TensorList");
  return joined(tensors, 1, tensors.list()[0]->dim() < 2 ? 0 : 1);
}
Sizes vstack(const Arg& tensors) { return joined(tensors, 2, 0); }

namespace {

size_t group_dim(const Arg& input, int64_t dim, int64_t ranks) {
  check(ErrorKind::kValue, ranks >= 1, "expected at least one rank, got ", ranks);
  check(meta(input).dim() > 0, "expected a tensor with at least one dimension, got a zero-dim tensor");
  return static_cast<size_t>(wrap_dim(dim, meta(input).dim()));
}

}  // namespace

Sizes gathered(const Arg& input, int64_t dim, int64_t ranks) {
  const size_t d = group_dim(input, dim, ranks);
  Sizes result = meta(input).sizes;
  result[d] = checked_mul(result[d], ranks);
  return result;
}

Sizes scattered(const Arg& input, int64_t dim, int64_t ranks) {
  const size_t d = group_dim(input, dim, ranks);
  Sizes result = meta(input).sizes;
  check(result[d] % ranks == 0, "dimension ", d, " of size ", result[d], " cannot be divided evenly among ", ranks,
        " ranks");
  result[d] /= ranks;
  return result;
}

Sizes exchanged(const Arg& input, int64_t split_dim, int64_t concat_dim, int64_t ranks) {
  Sizes result = scattered(input, split_dim, ranks);
  const size_t d = group_dim(input, concat_dim, ranks);
  result[d] = checked_mul(result[d], ranks);
  return result;
}

Sizes repeat(const Arg& input, SizesView repeats) {
  const Sizes& own = meta(input).sizes;
  check(repeats.size() >= own.size(),
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Sizes result(repeats.begin(), repeats.end());
  for (size_t i = 0; i < repeats.size(); ++i) {
    check(repeats[i] >= 0, "Trying to create tensor with negative dimension ", repeats[i], ": ", repeats);
    if (i + own.size() >= repeats.size()) result[i] = checked_mul(repeats[i], own[i + own.size() - repeats.size()]);
  }
  return result;
}

Sizes tile(const Arg& input, SizesView dims) {
  Sizes repeats(dims.begin(), dims.end());
  while (repeats.size() < meta(input).sizes.size()) repeats.insert(repeats.begin(), 1);
  return repeat(input, repeats);
}

Sizes repeat_interleave(const Arg& input, SymInt repeats, std::optional<int64_t> dim) {
  check(repeats >= 0, "repeats can not be negative");
  if (!dim) return {checked_mul(meta(input).numel(), repeats)};
  Sizes result = meta(input).sizes;
  if (result.empty()) return {repeats};
  SymInt& size = result[at(wrap_dim(*dim, meta(input).dim()))];
  size = checked_mul(size, repeats);
  return result;
}

Sizes flip(const Arg& input, SizesView dims) {
  Sizes seen;
  for (int64_t d : dims) {
    int64_t wrapped = wrap_dim(d, meta(input).dim());
    check(std::find(seen.begin(), seen.end(), wrapped) == seen.end(), "dim ", wrapped,
          " appears multiple times in the list of dims");
    seen.push_back(wrapped);
  }
  return meta(input).sizes;
}

Sizes roll(const Arg& input, SizesView shifts, SizesView dims) {
  check(!shifts.empty(), "`shifts` required");
  check(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
        "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  check(ErrorKind::kIndex, dims.empty() || meta(input).dim() > 0, "Dimension specified as ",
        dims.empty() ? SymInt(0) : dims[0], " but tensor has no dimensions");
  for (int64_t d : dims) wrap_dim(d, meta(input).dim());
  return meta(input).sizes;
}

namespace {

void check_pixels(const char* name, SizesView sizes, SymInt factor, const char* parameter) {
  check(sizes.size() >= 3, name, " expects input to have at least 3 dimensions, but got input with ", sizes.size(),
        " dimension(s)");
  check(factor > 0, name, " expects a positive ", parameter, ", but got ", factor);
}

}  // namespace

Sizes pixel_shuffle(const Arg& input, SymInt factor) {
  Sizes sizes = meta(input).sizes;
  check_pixels("pixel_shuffle", sizes, factor, "upscale_factor");
  const size_t n = sizes.size();
  const SymInt square = checked_mul(factor, factor);
  check(sizes[n - 3] % square == 0,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
        "input.size(-3)=",
        sizes[n - 3], " is not divisible by ", square);
  sizes[n - 3] /= square;
  sizes[n - 2] = checked_mul(sizes[n - 2], factor);
  sizes[n - 1] = checked_mul(sizes[n - 1], factor);
  return sizes;
}

Sizes pixel_unshuffle(const Arg& input, SymInt factor) {
  Sizes sizes = meta(input).sizes;
  check_pixels("pixel_unshuffle", sizes, factor, "downscale_factor");
  const size_t n = sizes.size();
  for (size_t back : {size_t{2}, size_t{1}}) {
    check(sizes[n - back] % factor == 0, "pixel_unshuffle expects ", back == 2 ? "height" : "width",
          " to be divisible by downscale_factor, but input.size(-", back, ")=", sizes[n - back],
          " is not divisible by ", factor);
    sizes[n - back] /= factor;
  }
  sizes[n - 3] = checked_mul(sizes[n - 3], checked_mul(factor, factor));
  return sizes;
}

Sizes channel_shuffle(const Arg& input, SymInt groups) {
  const Sizes& sizes = meta(input).sizes;
  check(sizes.size() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", sizes);
  check(groups > 0 && sizes[1] % groups == 0, "[channel_shuffle] expected a number of groups that divides ", sizes[1],
        " channels, got ", groups);
  return sizes;
}

Sizes require_matrices(const Arg& input) {
  check(meta(input).dim() >= 2, "input tensor must have at least 2 dimensions");
  return meta(input).sizes;
}

Sizes diag(const Arg& input, SymInt diagonal) {
  check(meta(input).dim() == 1 || meta(input).dim() == 2, "diag(): Supports 1D or 2D tensors. Got ", meta(input).dim(),
        "D");
  if (meta(input).dim() == 2) return shape_rules::diagonal(input, diagonal, 0, 1).sizes;
  SymInt n = checked_add(meta(input).sizes[0], distance_from_main(diagonal));
  return {n, n};
}

Sizes diagflat(const Arg& input, SymInt offset) {
  const SymInt n = checked_add(meta(input).numel(), distance_from_main(offset));
  return {n, n};
}

Sizes diag_embed(const Arg& input, SymInt offset, int64_t dim1, int64_t dim2) {
  int64_t n = meta(input).dim() + 1;
  check(ErrorKind::kIndex, meta(input).dim() > 0, "diag_embed needs at least one dimension");
  int64_t a = wrap_dim(dim1, n), b = wrap_dim(dim2, n);
  check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Sizes result(meta(input).sizes.begin(), meta(input).sizes.end() - 1);
  SymInt side = checked_add(meta(input).sizes.back(), distance_from_main(offset));
  result.insert(result.begin() + std::min(a, b), side);
  result.insert(result.begin() + std::max(a, b), side);
  return result;
}

}  // namespace tt::shape_rules
