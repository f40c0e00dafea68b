// Rules for views: sizes, strides and offsets over the first tensor's storage.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/schema/checked_math.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::shape_rules {
namespace {

const TensorMeta& meta(const Arg& a) { return *a.tensor; }
size_t at(int64_t dim) { return static_cast<size_t>(dim); }

Geometry geometry_of(const Arg& input) {
  const TensorMeta& m = meta(input);
  return {m.sizes, m.strides, m.offset, true};
}

// Returns the wrapped dimension; throws if the tensor has no dimensions.
int64_t existing_dim(const Arg& input, int64_t dim) {
  check(ErrorKind::kIndex, meta(input).dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, meta(input).dim());
}

std::string shape_text(SizesView size) { return absl::StrCat("'", to_string(size), "'"); }

// Replaces a size of -1, and checks that the sizes match the number of elements.
Sizes resolve(SizesView size, SymInt numel) {
  Sizes result(size.begin(), size.end());
  SymInt product = 1, unknown = -1;
  bool fits = true;
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] == -1) {
      check(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<int64_t>(i);
      continue;
    }
    check(size[i] >= 0, "invalid shape dimension ", size[i]);
    fits = fits && !multiply_overflows(product, size[i], &product);
  }
  if (unknown >= 0 && fits) {
    check(product != 0, "cannot reshape tensor of ", numel, " elements into shape ", size,
          " because the unspecified dimension size -1 can be any value and is ambiguous");
    result[at(unknown)] = numel / product;
    product *= result[at(unknown)];
  }
  check(fits && product == numel, "shape ", shape_text(size), " is invalid for input of size ", numel);
  return result;
}

// Whether `stride` is base * run.
bool is_product(SymInt stride, SymInt base, SymInt run) {
  SymInt product = 0;
  return !multiply_overflows(base, run, &product) && hint_of(stride) == hint_of(product);
}

// Returns the strides of a view with sizes `size` and the same elements in the same order; nullopt if a copy is needed.
// Whether there is one is decided for the example: each run finds it again, and the sizes do not depend on it.
// Merges adjacent dimensions without gaps and splits them according to `size`.
std::optional<Sizes> restride(const TensorMeta& m, SizesView size) {
  if (m.is_contiguous()) return contiguous_strides(size);
  Sizes strides(size.size());
  int64_t view_dim = static_cast<int64_t>(size.size()) - 1;
  SymInt run = 1, base = 1;  // number of elements in the current run of dimensions; its innermost stride
  for (int64_t d = m.dim() - 1; d >= -1; --d) {
    if (d >= 0) {
      if (hint_of(m.sizes[at(d)]) == 1) continue;
      if (hint_of(run) == 1) base = m.strides[at(d)];
      bool joins = hint_of(run) == 1 || is_product(m.strides[at(d)], base, run);
      if (joins) {
        run *= m.sizes[at(d)];
        continue;
      }
    }
    // The run ends here: the sizes of the view's dimensions must divide it exactly.
    int64_t left = hint_of(run);
    SymInt stride = base;
    while (view_dim >= 0 && (left > 1 || hint_of(size[at(view_dim)]) == 1)) {
      if (left % hint_of(size[at(view_dim)]) != 0) return std::nullopt;
      strides[at(view_dim)] = stride;
      stride = scaled_stride(stride, size[at(view_dim)]);
      left /= hint_of(size[at(view_dim)]);
      --view_dim;
    }
    if (left != 1) return std::nullopt;
    if (d >= 0) {
      run = m.sizes[at(d)];
      base = m.strides[at(d)];
    }
  }
  for (; view_dim >= 0; --view_dim) strides[at(view_dim)] = 1;  // the remaining dimensions have size 1
  return strides;
}

Geometry pieces(const Arg& input, int64_t dim, SymInt start, SymInt length) {
  Geometry g = geometry_of(input);
  // If the offset of an empty piece overflows, the piece keeps the input's offset, because it has no element.
  SymInt step = 0;
  const bool fits = !multiply_overflows(start, g.strides[at(dim)], &step) && !add_overflows(g.offset, step, &step);
  check(fits || length == 0, "integer overflow: ", start, " * ", g.strides[at(dim)], " + ", g.offset,
        " does not fit into 64 bits");
  if (fits) g.offset = step;
  g.sizes[at(dim)] = length;
  return g;
}

void erase(Geometry& g, int64_t dim) {
  g.sizes.erase(g.sizes.begin() + dim);
  g.strides.erase(g.strides.begin() + dim);
}

Geometry permuted(const Arg& input, SizesView order) {
  Geometry g = geometry_of(input), result = g;
  for (size_t i = 0; i < order.size(); ++i) {
    result.sizes[i] = g.sizes[at(order[i])];
    result.strides[i] = g.strides[at(order[i])];
  }
  return result;
}

}  // namespace

Geometry alias(const Arg& input) { return geometry_of(input); }

Geometry contiguous(const Arg& input) {
  Geometry g = geometry_of(input);
  if (meta(input).is_contiguous()) return g;
  return {g.sizes, contiguous_strides(g.sizes), 0, false};
}

Geometry reshape(const Arg& input, SizesView shape) {
  Sizes size = resolve(shape, meta(input).numel());
  std::optional<Sizes> strides = restride(meta(input), size);
  if (strides) return {size, *strides, meta(input).offset, true};
  return {size, contiguous_strides(size), 0, false};
}

Geometry view(const Arg& input, SizesView size) {
  Geometry g = reshape(input, size);
  check(g.alias,
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.");
  return g;
}

Geometry view_as(const Arg& input, const Arg& other) { return view(input, meta(other).sizes); }
Geometry reshape_as(const Arg& input, const Arg& other) { return reshape(input, meta(other).sizes); }

Geometry flatten(const Arg& input, int64_t start_dim, int64_t end_dim) {
  const Sizes& sizes = meta(input).sizes;
  int64_t start = wrap_dim(start_dim, meta(input).dim()), end = wrap_dim(end_dim, meta(input).dim());
  check(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (sizes.empty()) return reshape(input, {1});
  Sizes shape(sizes.begin(), sizes.begin() + start);
  SymInt joined = 1;
  for (int64_t d = start; d <= end; ++d) joined *= sizes[at(d)];
  shape.push_back(joined);
  shape.insert(shape.end(), sizes.begin() + end + 1, sizes.end());
  return reshape(input, shape);
}

Geometry ravel(const Arg& input) {
  if (meta(input).is_contiguous()) return flatten(input, 0, -1);
  return {{meta(input).numel()}, {1}, 0, false};
}

Geometry unflatten(const Arg& input, int64_t dim, SizesView sizes) {
  int64_t d = existing_dim(input, dim);
  const Sizes& own = meta(input).sizes;
  check(!sizes.empty(), "unflatten: sizes must be non-empty");
  Sizes parts(sizes.begin(), sizes.end());
  auto unknown = std::find(parts.begin(), parts.end(), -1);
  SymInt product = 1;
  for (SymInt size : sizes) {
    if (size != -1) product = checked_mul(product, larger(size, 0));
  }
  if (unknown != parts.end()) {
    check(std::count(sizes.begin(), sizes.end(), -1) == 1, "only one dimension can be inferred");
    *unknown = product != 0 ? own[at(d)] / product : SymInt(0);
    product *= *unknown;
  }
  check(product == own[at(d)], "unflatten: Provided sizes ", sizes, " don't multiply up to the size of dim ", d, " (",
        own[at(d)], ") in the input tensor");
  Sizes shape(own.begin(), own.begin() + d);
  shape.insert(shape.end(), parts.begin(), parts.end());
  shape.insert(shape.end(), own.begin() + d + 1, own.end());
  return reshape(input, shape);
}

Geometry permute(const Arg& input, SizesView dims) {
  int64_t n = meta(input).dim();
  check(static_cast<int64_t>(dims.size()) == n,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
        "ordering of "
        "dimensions i.e. input.dim() = ",
        n, " is not equal to len(dims) = ", dims.size());
  Sizes order;
  for (int64_t d : dims) {
    int64_t wrapped = wrap_dim(d, n);
    check(std::find(order.begin(), order.end(), wrapped) == order.end(), "permute(): duplicate dims are not allowed.");
    order.push_back(wrapped);
  }
  return permuted(input, order);
}

Geometry transpose(const Arg& input, int64_t dim0, int64_t dim1) {
  Geometry g = geometry_of(input);
  int64_t a = wrap_dim(dim0, meta(input).dim()), b = wrap_dim(dim1, meta(input).dim());
  if (g.sizes.empty()) return g;
  std::swap(g.sizes[at(a)], g.sizes[at(b)]);
  std::swap(g.strides[at(a)], g.strides[at(b)]);
  return g;
}

Geometry t(const Arg& input) {
  check(meta(input).dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", meta(input).dim(), "D");
  return meta(input).dim() < 2 ? geometry_of(input) : transpose(input, 0, 1);
}

Geometry movedim(const Arg& input, SizesView source, SizesView destination) {
  int64_t n = meta(input).dim();
  check(source.size() == destination.size(), "movedim: Invalid source or destination dims: source (", source,
        " dims) should contain the same number of dims as destination (", destination, " dims)");
  Sizes order(at(std::max<int64_t>(n, 1)), -1);  // a zero-dim tensor counts as one-dimensional
  Sizes moved;
  for (size_t i = 0; i < source.size(); ++i) {
    int64_t from = wrap_dim(source[i], n), to = wrap_dim(destination[i], n);
    check(std::find(moved.begin(), moved.end(), from) == moved.end(), "movedim: repeated dim in `source` (", source,
          ")");
    check(order[at(to)] < 0, "movedim: repeated dim in `destination` (", destination, ")");
    order[at(to)] = from;
    moved.push_back(from);
  }
  if (n == 0) return geometry_of(input);
  int64_t next = 0;
  for (SymInt& slot : order) {
    if (slot >= 0) continue;
    while (std::find(moved.begin(), moved.end(), next) != moved.end()) ++next;
    slot = next++;
  }
  return permuted(input, order);
}

Geometry squeeze(const Arg& input) {
  Geometry g = geometry_of(input);
  for (int64_t d = meta(input).dim() - 1; d >= 0; --d) {
    if (g.sizes[at(d)] == 1) erase(g, d);
  }
  return g;
}

Geometry squeeze(const Arg& input, SizesView dims) {
  Geometry g = geometry_of(input);
  Sizes wrapped;
  for (int64_t d : dims) wrapped.push_back(wrap_dim(d, meta(input).dim()));
  std::sort(wrapped.begin(), wrapped.end(), std::greater<>());
  check(std::adjacent_find(wrapped.begin(), wrapped.end()) == wrapped.end(),
        "a dim appears multiple times in the list of dims");
  for (int64_t d : wrapped) {
    if (!g.sizes.empty() && g.sizes[at(d)] == 1) erase(g, d);
  }
  return g;
}

Geometry unsqueeze(const Arg& input, int64_t dim) {
  Geometry g = geometry_of(input);
  int64_t d = wrap_dim(dim, meta(input).dim() + 1);
  SymInt stride = d < meta(input).dim() ? scaled_stride(g.strides[at(d)], g.sizes[at(d)]) : SymInt(1);
  g.sizes.insert(g.sizes.begin() + d, 1);
  g.strides.insert(g.strides.begin() + d, stride);
  return g;
}

Geometry expand(const Arg& input, SizesView size) {
  const TensorMeta& m = meta(input);
  int64_t extra = static_cast<int64_t>(size.size()) - m.dim();
  check(extra >= 0, "expand(", m, ", size=", size, "): the number of sizes provided (", size.size(),
        ") must be greater or equal to the number of dimensions in the tensor (", m.dim(), ")");
  Geometry g{Sizes(size.begin(), size.end()), Sizes(size.size()), m.offset, true};
  const int64_t last = static_cast<int64_t>(size.size()) - 1;
  for (int64_t i = last; i >= 0; --i) {
    int64_t d = i - extra;
    SymInt own = d >= 0 ? m.sizes[at(d)] : SymInt(1);
    if (size[at(i)] == -1) {
      check(d >= 0, "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ", i);
      g.sizes[at(i)] = own;
    }
    check(g.sizes[at(i)] >= 0, "expand: negative size, got ", g.sizes[at(i)]);
    const bool is_kept = surely_equal(g.sizes[at(i)], own);
    check(is_kept || surely_equal(own, 1) || g.sizes[at(i)] == own || own == 1, "The expanded size of the tensor (",
          g.sizes[at(i)], ") must match the existing size (", own, ") at non-singleton dimension ", i,
          ".  Target sizes: ", size, ".  Tensor sizes: ", m.sizes);
    // A new dimension of size 1 has the stride of a contiguous one, unless the tensor has no dimensions: as PyTorch's.
    // It is never used, and may exceed 64 bits for the sizes of a meta tensor.
    SymInt stride = 0;
    if (d >= 0) {
      stride = m.strides[at(d)];
    } else if (i < last && m.dim() > 0) {
      stride = wrapped_product(g.sizes[at(i + 1)], g.strides[at(i + 1)]);
    }
    g.strides[at(i)] = is_kept || hint_of(own) == hint_of(g.sizes[at(i)]) ? stride : SymInt(0);
  }
  return g;
}

Geometry expand_as(const Arg& input, const Arg& other) { return expand(input, meta(other).sizes); }

Geometry narrow(const Arg& input, int64_t dim, SymInt start, SymInt length) {
  check(meta(input).dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, meta(input).dim());
  const SymInt size = meta(input).sizes[at(d)];
  check(length >= 0, "narrow(): length must be non-negative.");
  check(ErrorKind::kIndex, start >= -size && start <= size, "start out of range (expected to be in range of [", -size,
        ", ", size, "], but got ", start, ")");
  if (start < 0) start += size;
  check(length <= size - start, "start (", start, ") + length (", length, ") exceeds dimension size (", size, ").");
  return pieces(input, d, start, length);
}

Geometry select(const Arg& input, int64_t dim, SymInt index) {
  check(ErrorKind::kIndex, meta(input).dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, meta(input).dim());
  const SymInt size = meta(input).sizes[at(d)];
  check(ErrorKind::kIndex, index >= -size && index < size, "select(): index ", index,
        " out of range for tensor of size ", meta(input).sizes, " at dimension ", d);
  Geometry g = pieces(input, d, index < 0 ? index + size : index, 1);
  erase(g, d);
  return g;
}

Geometry slice(const Arg& input, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
  const int64_t d = existing_dim(input, dim);
  const SymInt size = meta(input).sizes[at(d)];
  check(step > 0, "slice step must be positive, got ", step);
  auto clamp = [&](std::optional<SymInt> v, SymInt otherwise) {
    if (!v) return otherwise;
    return *v < 0 ? larger(*v + size, 0) : smaller(*v, size);
  };
  SymInt from = clamp(start, 0), to = larger(clamp(end, size), from);
  Geometry g = pieces(input, d, from, divided_up(to - from, step));
  g.strides[at(d)] = scaled_stride(g.strides[at(d)], step);
  return g;
}

Geometry diagonal(const Arg& input, SymInt offset, int64_t dim1, int64_t dim2) {
  int64_t a = existing_dim(input, dim1), b = existing_dim(input, dim2);
  check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Geometry g = geometry_of(input);
  SymInt rows = g.sizes[at(a)], columns = g.sizes[at(b)];
  // Clamped, so that an excessive offset gives an empty diagonal.
  const SymInt shift = larger(smaller(offset, columns), -rows);
  SymInt length = larger(shift >= 0 ? smaller(rows, columns - shift) : smaller(rows + shift, columns), 0);
  if (length > 0) g.offset += shift >= 0 ? shift * g.strides[at(b)] : -shift * g.strides[at(a)];
  SymInt stride = added_stride(g.strides[at(a)], g.strides[at(b)]);
  erase(g, std::max(a, b));
  erase(g, std::min(a, b));
  g.sizes.push_back(length);
  g.strides.push_back(stride);
  return g;
}

Geometry unfold(const Arg& input, int64_t dimension, SymInt size, SymInt step) {
  Geometry g = geometry_of(input);
  const bool zero_dim = g.sizes.empty();  // counts as one dimension with one element
  const int64_t d = wrap_dim(dimension, meta(input).dim());
  const SymInt length = zero_dim ? SymInt(1) : g.sizes[at(d)];
  check(size >= 0, "size is ", size, " but must be >= 0");
  check(size <= length, "maximum size for tensor at dimension ", d, " is ", length, " but size is ", size);
  check(step > 0, "step is ", step, " but must be > 0");
  if (zero_dim) return {{size}, {1}, g.offset, true};
  SymInt stride = g.strides[at(d)];
  g.sizes[at(d)] = (length - size) / step + 1;
  g.strides[at(d)] = scaled_stride(stride, step);
  g.sizes.push_back(size);
  g.strides.push_back(stride);
  return g;
}

Geometry as_strided(const Arg& input, SizesView size, SizesView stride, std::optional<SymInt> offset) {
  check(size.size() == stride.size(), "mismatch in length of strides and shape");
  Geometry g{sizes(size), Sizes(stride.begin(), stride.end()), offset.value_or(meta(input).offset), true};
  check(g.offset >= 0, "storage_offset must be non-negative, got ", g.offset);
  for (SymInt s : stride) {
    check(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
  }
  return g;
}

Geometry view_of_dtype(const Arg& input, DType dtype) {
  const TensorMeta& t = meta(input);
  const auto from = static_cast<int64_t>(item_size(t.dtype)), to = static_cast<int64_t>(item_size(dtype));
  Geometry g = geometry_of(input);
  if (from == to) return g;
  const auto require = [&](bool holds, std::string_view what) {
    check(holds, what, " to view ", scalar_type_name(t.dtype), " as ", scalar_type_name(dtype),
          " (different element sizes)");
  };
  require(t.dim() > 0, "self.dim() cannot be 0");
  require(t.strides.back() == 1, "self.stride(-1) must be 1");
  const SymInt more = larger(from / to, 1), fewer = larger(to / from, 1);
  const auto scaled = [&](SymInt count, std::string_view what) {
    check(count % fewer == 0, what, " must be divisible by ", fewer, " to view ", scalar_type_name(t.dtype), " as ",
          scalar_type_name(dtype), " (different element sizes)");
    return count / fewer;
  };
  g.sizes.back() = checked_mul(scaled(g.sizes.back(), "self.size(-1)"), more);
  g.offset = checked_mul(scaled(g.offset, "self.storage_offset()"), more);
  for (size_t d = 0; d + 1 < g.strides.size(); ++d) {
    g.strides[d] = scaled_stride(scaled(g.strides[d], "self.stride(d)"), more);
  }
  return g;
}

namespace {

// Each view of a list takes 200 bytes in the client and in the engine; an engine accepts fewer results per instruction.
constexpr int64_t kMaxPieces = int64_t{1} << 18;

void check_pieces(SymInt count) {
  check(is_within(count, kMaxPieces), "expected at most ", kMaxPieces, " pieces, got ", count);
}

// The size of a dimension of a tensor that an operator divides, which must exist.
SymInt size_along(SizesView sizes, int64_t dim, std::string_view expectation) {
  check(!sizes.empty(), expectation, " at least a 1-dimensional tensor, but got a tensor with 0 dims");
  return sizes[at(wrap_dim(dim, static_cast<int64_t>(sizes.size())))];
}

}  // namespace

Sizes split_sizes(SizesView sizes, SymInt split_size, int64_t dim) {
  check(split_size >= 0, "split expects split_size be non-negative, but got split_size=", split_size);
  SymInt size = size_along(sizes, dim, "split expects");
  check(split_size > 0 || size == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ",
        size);
  if (size == 0) return {0};
  const SymInt count = divided_up(size, split_size);
  check_pieces(count);
  Sizes result(at(count), split_size);
  result.back() = size - (count - 1) * split_size;
  return result;
}

Sizes chunk_sizes(SizesView sizes, SymInt chunks, int64_t dim) {
  check(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  SymInt size = size_along(sizes, dim, "chunk expects");
  SymInt split_size = divided_up(size, chunks);
  if (is_within(chunks, kMaxPieces) && size > (chunks - 1) * (chunks - 1)) {  // then there are as many as requested
    Sizes result(at(chunks), split_size);
    result.back() = size - (chunks - 1) * split_size;
    return result;
  }
  if (split_size == 0) {
    check_pieces(chunks);
    return Sizes(at(chunks), 0);
  }
  return split_sizes(sizes, split_size, dim);
}

Sizes section_sizes(SizesView sizes, SymInt sections, int64_t dim) {
  check(sections > 0, "number of sections must be larger than 0, got ", sections);
  check_pieces(sections);
  SymInt size = size_along(sizes, dim, "tensor_split expected");
  Sizes result;
  for (int64_t i = 0; i < sections; ++i) result.push_back(divided_up(larger(size - i, 0), sections));
  return result;
}

Geometries split(const Arg& input, SizesView parts, int64_t dim) {
  SymInt size = size_along(meta(input).sizes, dim, "split expects"), start = 0;
  const int64_t d = wrap_dim(dim, meta(input).dim());
  Geometries result;
  for (SymInt part : parts) {
    check(part >= 0,
          "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=", parts);
    check(part <= size - start, "split_with_sizes expects split_sizes to sum exactly to ", size,
          " (input tensor's size at dimension ", d, "), but got split_sizes=", parts);
    result.push_back(pieces(input, d, start, part));
    start += part;
  }
  check(start == size, "split_with_sizes expects split_sizes to sum exactly to ", size,
        " (input tensor's size at dimension ", d, "), but got split_sizes=", parts);
  return result;
}

Geometries split(const Arg& input, SymInt split_size, int64_t dim) {
  return split(input, split_sizes(meta(input).sizes, split_size, dim), dim);
}

Geometries chunk(const Arg& input, SymInt chunks, int64_t dim) {
  return split(input, chunk_sizes(meta(input).sizes, chunks, dim), dim);
}

Geometries tensor_split(const Arg& input, SymInt sections, int64_t dim) {
  const Sizes lengths = section_sizes(meta(input).sizes, sections, dim);
  const int64_t d = wrap_dim(dim, meta(input).dim());
  const SymInt size = meta(input).sizes[at(d)], length = size / sections, longer = size - length * sections;
  Geometries result;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto before = static_cast<int64_t>(i);
    result.push_back(pieces(input, d, length * before + smaller(longer, before), lengths[i]));
  }
  return result;
}

Geometries unbind(const Arg& input, int64_t dim) {
  int64_t d = existing_dim(input, dim);
  check_pieces(meta(input).sizes[at(d)]);
  Geometries result;
  for (int64_t i = 0; i < meta(input).sizes[at(d)]; ++i) result.push_back(select(input, d, i));
  return result;
}

}  // namespace tt::shape_rules
