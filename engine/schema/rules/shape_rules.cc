#include "engine/schema/rules/shape_rules.h"

#include <algorithm>
#include <cmath>

#include "engine/schema/error.h"
#include "engine/schema/rules/dtype_rules.h"

namespace tt::shape_rules {
namespace {

SizesView sizes_of(const Arg& a) { return a.kind == Arg::Kind::kTensor ? SizesView(a.tensor->sizes) : SizesView(); }

// Returns the product of the sizes, or -1 on overflow.
SymInt element_count(SizesView sizes) {
  SymInt n = 1;
  for (SymInt size : sizes) {
    if (multiply_overflows(n, size, &n)) return -1;
  }
  return n;
}

bool is_symbolic_range(const Scalar& start, const Scalar& end, const Scalar& step) {
  const auto are_all = [&](auto holds) { return holds(start) && holds(end) && holds(step); };
  return are_all([](const Scalar& s) { return s.category() <= Category::kInteger && !s.is_beyond_int(); }) &&
         !are_all([](const Scalar& s) { return !is_expression(s.to_int()); });
}

// Returns an integer's value, which may exceed int64's maximum.
__int128 wide(const Scalar& integer) {
  const int64_t value = integer.to_int();
  return integer.is_beyond_int() ? static_cast<__int128>(static_cast<uint64_t>(value)) : value;
}

}  // namespace

int64_t wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t n = std::max<int64_t>(ndim, 1);
  check(ErrorKind::kIndex, dim >= -n && dim < n, "Dimension out of range (expected to be in range of [", -n, ", ",
        n - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

Sizes broadcast_sizes(SizesView a, SizesView b) {
  size_t n = std::max(a.size(), b.size());
  Sizes result(n);
  for (size_t i = 0; i < n; ++i) {  // i counts from the last dimension
    SymInt x = i < a.size() ? a[a.size() - 1 - i] : SymInt(1);
    SymInt y = i < b.size() ? b[b.size() - 1 - i] : SymInt(1);
    if (surely_equal(x, y) || surely_equal(y, 1) || surely_equal(x, 1)) {
      result[n - 1 - i] = surely_equal(x, 1) ? y : x;
      continue;
    }
    check(x == y || x == 1 || y == 1, "The size of tensor a (", x, ") must match the size of tensor b (", y,
          ") at non-singleton dimension ", n - 1 - i);
    result[n - 1 - i] = !surely_equal(x, y) && x == 1 ? y : x;
  }
  return result;
}

Sizes broadcast_all(std::initializer_list<const Arg*> args) {
  Sizes result;
  bool first = true;
  for (const Arg* a : args) {
    if (a->kind != Arg::Kind::kTensor) continue;
    if (first) {
      result = a->tensor->sizes;
      first = false;
    } else if (!surely_equal(a->tensor->sizes, result)) {
      result = broadcast_sizes(result, a->tensor->sizes);
    }
  }
  return result;
}

Sizes same(const Arg& tensor) {
  SizesView s = sizes_of(tensor);
  return Sizes(s.begin(), s.end());
}

Sizes sizes(SizesView given) {
  for (SymInt size : given) {
    check(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", given);
  }
  return Sizes(given.begin(), given.end());
}

Sizes arange(Scalar start, Scalar end, Scalar step) {
  if (is_symbolic_range(start, end, step)) {
    const SymInt length = end.to_int() - start.to_int(), by = step.to_int();
    check(by != 0, "step must be nonzero");
    check(by > 0 ? length >= 0 : length <= 0, "upper bound and lower bound inconsistent with step sign");
    return {by > 0 ? divided_up(length, by) : divided_up(-length, -by)};
  }
  double from = start.to_double(), to = end.to_double(), by = step.to_double();
  check(by != 0, "step must be nonzero");
  check(std::isfinite(from) && std::isfinite(to), "unsupported range: ", start.to_string(), " -> ", end.to_string());
  bool integers = std::max({start.category(), end.category(), step.category()}) <= Category::kInteger;
  const __int128 span = integers ? wide(end) - wide(start) : 0;  // exact; doubles would round
  const bool rises = integers ? span >= 0 : to >= from, falls = integers ? span <= 0 : to <= from;
  check((by > 0 && rises) || (by < 0 && falls), "upper bound and lower bound inconsistent with step sign");
  if (integers) {
    __int128 count = (span + wide(step) + (by > 0 ? -1 : 1)) / wide(step);
    check(count < (static_cast<__int128>(1) << 62), "the range is too long: expected less than 2^62 elements");
    return {static_cast<int64_t>(count)};
  }
  double count = std::ceil((to - from) / by);
  check(count < 0x1p62, "the range is too long: expected less than 2^62 elements, got ", count);
  return {static_cast<int64_t>(count)};
}

Sizes steps(SymInt count) {
  check(count >= 0, "number of steps must be non-negative");
  return {count};
}

Sizes eye(SymInt n, std::optional<SymInt> m) {
  check(n >= 0, "n must be greater or equal to 0, got ", n);
  check(m.value_or(n) >= 0, "m must be greater or equal to 0, got ", m.value_or(n));
  return {n, m.value_or(n)};
}

Sizes literal(std::string_view bytes, SizesView size, DType dtype) {
  Sizes result = sizes(size);
  SymInt n = element_count(result);
  check(ErrorKind::kValue,
        n >= 0 && n <= static_cast<int64_t>(bytes.size()) && static_cast<size_t>(n) * item_size(dtype) == bytes.size(),
        "the number of bytes does not match a ", name(dtype), " tensor of sizes ", size, ", got ", bytes.size());
  return result;
}

Sizes randint(SymInt low, SymInt high, SizesView size) {
  check(low < high, "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
  return sizes(size);
}

Sizes randperm(SymInt n) {
  check(n >= 0, "n must be non-negative, got ", n);
  return {n};
}

Sizes multinomial(const Arg& input, SymInt num_samples, bool replacement) {
  SizesView s = sizes_of(input);
  check(is_floating(dtype_rules::same(input)), "multinomial only supports floating-point dtypes for input, got: ",
        dtype_rules::scalar_type_name(dtype_rules::same(input)));
  check(s.size() == 1 || s.size() == 2, "prob_dist must be 1 or 2 dim");
  check(num_samples > 0, "cannot sample n_sample <= 0 samples");
  check(replacement || num_samples <= s.back(),
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  check(s.back() > 0, "cannot sample from an empty distribution");
  if (s.size() == 1) return {num_samples};
  return {s[0], num_samples};
}

Sizes assign(const Arg& input, const Arg& src) {
  Sizes target = same(input);
  SizesView from = sizes_of(src);
  // Leading ones of the source are dropped, as in PyTorch for x[i] = y.
  while (from.size() > target.size() && from.front() == 1) from.remove_prefix(1);
  bool fits = from.size() <= target.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    SymInt size = from[from.size() - 1 - i];
    fits = surely_equal(size, 1) || size == target[target.size() - 1 - i] || size == 1;
  }
  check(fits, "expand: the source's sizes must match the target's or be 1, got ", sizes_of(src), " and ", target);
  return target;
}

Sizes masked_fill(const Arg& input, const Arg& mask, const Arg& value) {
  check(value.kind != Arg::Kind::kTensor || value.tensor->dim() == 0,
        "masked_fill only supports a 0-dimensional value tensor, but got tensor with ",
        value.kind == Arg::Kind::kTensor ? value.tensor->dim() : 0, " dimension(s).");
  return broadcast(input, mask);
}

Sizes prelu(const Arg& input, const Arg& weight) {
  SizesView x = sizes_of(input), w = sizes_of(weight);
  SymInt channels = x.size() > 1 ? x[1] : SymInt(1);
  SymInt count = element_count(w);
  check(w.size() <= 1, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", w.size());
  check(count == 1 || count == channels,
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", count,
        " and channel size = ", channels, ".");
  return same(input);
}

Sizes glu(const Arg& input, int64_t dim) {
  Sizes result = same(input);
  check(!result.empty(), "glu does not support 0-dimensional tensors");
  int64_t d = wrap_dim(dim, static_cast<int64_t>(result.size()));
  check(result[d] % 2 == 0, "Halving dimension must be even, but dimension ", d, " is size ", result[d]);
  result[d] /= 2;
  return result;
}

Sizes gelu(const Arg& input, std::string_view approximate) {
  check(approximate == "none" || approximate == "tanh", "approximate argument must be either none or tanh, got ",
        approximate);
  return same(input);
}

Sizes polygamma(int64_t n, const Arg& input) {
  check(n >= 0, "polygamma(n, x) does not support negative n.");
  return same(input);
}

Sizes mvlgamma(const Arg& input, int64_t p) {
  constexpr SymInt kMaxOrder = 10'000;  // limits the number of operator calls, one per dimension
  check(p >= 1 && p <= kMaxOrder, "p has to be greater than or equal to 1, and at most ", kMaxOrder, ", got ", p);
  return same(input);
}

void add(Inference* out, DType dtype, Sizes sizes) {
  TensorMeta& meta = out->outputs.emplace_back();
  meta.dtype = dtype;
  meta.strides = contiguous_strides(sizes);
  meta.sizes = std::move(sizes);
}

void add(Inference* out, DType dtype, Geometry geometry) {
  TensorMeta& meta = out->outputs.emplace_back();
  meta.dtype = dtype;
  meta.sizes = std::move(geometry.sizes);
  meta.strides = std::move(geometry.strides);
  meta.offset = geometry.offset;
  out->alias = geometry.alias;
}

void add(Inference* out, DType dtype, const std::vector<Sizes>& list) {
  for (const Sizes& sizes : list) add(out, dtype, sizes);
}

void add(Inference* out, DType dtype, const std::vector<Geometry>& list) {
  for (const Geometry& geometry : list) add(out, dtype, geometry);
}

void add_dynamic(Inference* out, DType dtype) { out->outputs.emplace_back().dtype = dtype; }

}  // namespace tt::shape_rules
