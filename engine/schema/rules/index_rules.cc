// Rules for indexing, sorting and scans.
#include <algorithm>

#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::shape_rules {
namespace {

const TensorMeta& meta(const Arg& a) { return *a.tensor; }
size_t at(int64_t dim) { return static_cast<size_t>(dim); }

void check_index_dtype(const Arg& index) {
  const DType t = meta(index).dtype;
  check(t == DType::kInt64 || t == DType::kInt32 || meta(index).numel() == 0, "Expected dtype int64 for index, got ",
        name(t));
}

bool is_mask(const TensorMeta& t) { return t.dtype == DType::kBool || t.dtype == DType::kUInt8; }

// A zero-dim tensor counts as a vector of size one.
Sizes at_least_1d(const Sizes& sizes) { return sizes.empty() ? Sizes{1} : sizes; }

// An n-dimensional index must not exceed the indexed tensor's sizes, except in `dim`.
void check_inside(const char* what, const Sizes& index, const Sizes& sizes, int64_t dim) {
  check(index.size() == sizes.size(), "Index tensor must have the same number of dimensions as ", what, " tensor");
  for (size_t d = 0; d < index.size(); ++d) {
    check(static_cast<int64_t>(d) == dim || index[d] <= sizes[d], "Size does not match at dimension ", d,
          " expected index ", index, " to be smaller than ", what, " ", sizes, " apart from dimension ", dim);
  }
}

Sizes check_vector(const Arg& index, const char* op) {
  check_index_dtype(index);
  check(ErrorKind::kIndex, meta(index).dim() <= 1, op, "(): Index is supposed to be a vector");
  return at_least_1d(meta(index).sizes);
}

}  // namespace

Sizes gather(const Arg& input, int64_t dim, const Arg& index) {
  check_index_dtype(index);
  int64_t d = wrap_dim(dim, meta(input).dim());
  if (meta(index).numel() > 0) {
    check_inside("input", at_least_1d(meta(index).sizes), at_least_1d(meta(input).sizes), d);
  }
  return meta(index).sizes;
}

Sizes scatter(const Arg& input, int64_t dim, const Arg& index) {
  check_index_dtype(index);
  int64_t d = wrap_dim(dim, meta(input).dim());
  if (meta(index).numel() > 0) {
    check_inside("self", at_least_1d(meta(index).sizes), at_least_1d(meta(input).sizes), d);
  }
  return meta(input).sizes;
}

Sizes scatter(const Arg& input, int64_t dim, const Arg& index, const Arg& src) {
  Sizes result = scatter(input, dim, index);
  if (meta(index).numel() > 0) {
    check_inside("src", at_least_1d(meta(index).sizes), at_least_1d(meta(src).sizes), -1);
  }
  return result;
}

Sizes index_select(const Arg& input, int64_t dim, const Arg& index) {
  Sizes count = check_vector(index, "index_select");
  int64_t d = wrap_dim(dim, meta(input).dim());
  Sizes result = meta(input).sizes;
  check(ErrorKind::kIndex, !result.empty() || count[0] == 1,
        "index_select(): Index to scalar can have only 1 value, got ", count[0], " value(s)");
  if (!result.empty()) result[at(d)] = count[0];
  return result;
}

Sizes index_add(const Arg& input, int64_t dim, const Arg& index, const Arg& source) {
  Sizes count = check_vector(index, "index_add_");
  int64_t d = wrap_dim(dim, meta(input).dim());
  Sizes expected = at_least_1d(meta(input).sizes), got = at_least_1d(meta(source).sizes);
  check(expected.size() == got.size(), "index_add_(): self and source must have the same number of dimensions, got ",
        meta(input).sizes, " and ", meta(source).sizes);
  expected[at(d)] = count[0];
  check(expected == got, "index_add_(): source's sizes must be ", expected, ", got ", got);
  return meta(input).sizes;
}

Sizes index_fill(const Arg& input, int64_t dim, const Arg& index) {
  check_vector(index, "index_fill_");
  wrap_dim(dim, meta(input).dim());
  return meta(input).sizes;
}

namespace {

// The result shape of advanced indexing. The broadcast shape of the indices replaces the dimensions that they index. If
// those dimensions are not adjacent, the broadcast dimensions come first.
struct AdvancedIndexShape {
  Sizes before, broadcast, after;  // dimensions of the result
  bool masked = false;
};

AdvancedIndexShape advanced_index_shape(const Arg& input, const Arg& indices) {
  auto list = indices.list();
  const Sizes& sizes = meta(input).sizes;
  AdvancedIndexShape result;
  size_t dim = 0;
  int runs = 0;
  bool in_run = false;
  for (const TensorMeta* t : list) {
    SymInt covers = t && is_mask(*t) ? t->dim() : 1;
    check(ErrorKind::kIndex, dim + at(covers) <= sizes.size(), "too many indices for tensor of dimension ",
          sizes.size());
    if (!t) {
      (runs == 0 ? result.before : result.after).push_back(sizes[dim]);
      in_run = false;
    } else {
      check(ErrorKind::kIndex, is_integral(t->dtype),
            "tensors used as indices must be long, int, byte or bool tensors");
      runs += !in_run;
      in_run = true;
      if (is_mask(*t)) {
        result.masked = true;
        for (SymInt k = 0; k < covers; ++k) {
          check(ErrorKind::kIndex, t->sizes[at(k)] == sizes[dim + at(k)], "The shape of the mask ", t->sizes,
                " at index ", k, " does not match the shape of the indexed tensor ", sizes, " at index ", dim + at(k));
        }
      } else {
        try {
          result.broadcast = broadcast_sizes(result.broadcast, t->sizes);
        } catch (const Error&) {
          fail(ErrorKind::kIndex, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
               result.broadcast, ", ", t->sizes);
        }
      }
    }
    dim += at(covers);
  }
  result.after.insert(result.after.end(), sizes.begin() + static_cast<int64_t>(dim), sizes.end());
  if (runs > 1) {
    result.after.insert(result.after.begin(), result.before.begin(), result.before.end());
    result.before.clear();
  }
  return result;
}

Sizes joined(const AdvancedIndexShape& a) {
  Sizes result = a.before;
  result.insert(result.end(), a.broadcast.begin(), a.broadcast.end());
  result.insert(result.end(), a.after.begin(), a.after.end());
  return result;
}

}  // namespace

Sizes index(const Arg& input, const Arg& indices) {
  AdvancedIndexShape a = advanced_index_shape(input, indices);
  check(ErrorKind::kIndex, !a.masked,
        "index does not accept masks; use index_masked, whose output size depends on data");
  return joined(a);
}

Sizes index_put(const Arg& input, const Arg& indices, const Arg& values) {
  AdvancedIndexShape a = advanced_index_shape(input, indices);
  check(meta(values).dtype == meta(input).dtype || meta(values).dim() == 0,
        "Index put requires the source and destination dtypes match, got ", name(meta(input).dtype),
        " for the destination and ", name(meta(values).dtype), " for the source.");
  if (!a.masked) {  // with a mask, only the kernel knows the size
    Sizes target = joined(a);
    SizesView from = meta(values).sizes;
    bool fits = from.size() <= target.size();
    for (size_t i = 0; fits && i < from.size(); ++i) {
      SymInt size = from[from.size() - 1 - i];
      fits = surely_equal(size, 1) || size == target[target.size() - 1 - i] || size == 1;
    }
    check(fits, "shape mismatch: value tensor of shape ", meta(values).sizes,
          " cannot be broadcast to indexing result of shape ", target);
  }
  return meta(input).sizes;
}

Sizes take_along_dim(const Arg& input, const Arg& indices, int64_t dim) {
  check_index_dtype(indices);
  check(meta(input).dim() == meta(indices).dim(),
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got ",
        meta(input).dim(), " dimensions for input, and ", meta(indices).dim(), " dimensions for indices");
  check(ErrorKind::kIndex, meta(input).dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  int64_t d = wrap_dim(dim, meta(input).dim());
  Sizes a = meta(input).sizes, b = meta(indices).sizes;
  SymInt count = b[at(d)];
  a[at(d)] = b[at(d)] = 1;
  Sizes result = broadcast_sizes(a, b);
  result[at(d)] = count;
  return result;
}

Sizes searchsorted(const Arg& sorted_sequence, const Arg& input) {
  const Sizes &s = meta(sorted_sequence).sizes, &v = meta(input).sizes;
  check(!s.empty(), "searchsorted(): boundaries tensor should have positive dimension");
  bool same_lead = s.size() == v.size() && std::equal(s.begin(), s.end() - 1, v.begin());
  check(
      s.size() == 1 || same_lead,
      "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
      "and input value tensor must match, but we got boundaries tensor ",
      s, " and input value tensor ", v);
  check(meta(sorted_sequence).dtype == meta(input).dtype,
        "torch.searchsorted(): boundary tensor and input value tensor should have same dtype, but got ",
        name(meta(sorted_sequence).dtype), " and ", name(meta(input).dtype));
  return v;
}

Sizes require_dim(const Arg& input, int64_t dim) {
  wrap_dim(dim, meta(input).dim());
  return meta(input).sizes;
}

Sizes topk(const Arg& input, SymInt k, int64_t dim) {
  Sizes result = meta(input).sizes;
  int64_t d = wrap_dim(dim, meta(input).dim());
  check(k >= 0 && k <= (result.empty() ? SymInt(1) : result[at(d)]), "selected index k out of range");
  if (!result.empty()) result[at(d)] = k;
  return result;
}

Sizes kthvalue(const Arg& input, SymInt k, int64_t dim, bool keepdim) {
  Sizes result = meta(input).sizes;
  int64_t d = wrap_dim(dim, meta(input).dim());
  check(ErrorKind::kIndex, result.empty() || result[at(d)] != 0, "Expected reduction dim ", d,
        " to have non-zero size.");
  check(k >= 1 && k <= (result.empty() ? SymInt(1) : result[at(d)]),
        "kthvalue(): selected number k out of range for dimension ", d);
  if (result.empty()) return result;
  if (keepdim) {
    result[at(d)] = 1;
  } else {
    result.erase(result.begin() + d);
  }
  return result;
}

}  // namespace tt::shape_rules
