// Rules for matrix products and operators built from them.
#include <algorithm>
#include <iterator>

#include "engine/schema/checked_math.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {
namespace {

SizesView sizes_of(const Arg& tensor) { return tensor.tensor->sizes; }
Sizes copy_of(const Arg& tensor) { return tensor.tensor->sizes; }

// Formats two sizes as "3x4".
std::string times(SizesView s) {
  std::string text;
  for (SymInt size : s) absl::StrAppend(&text, text.empty() ? "" : "x", text_of(size));
  return text;
}

void check_matrices(SizesView a, SizesView b, std::string_view first, std::string_view second) {
  check(a.size() == 2, first, " must be a matrix, got ", a.size(), "-D tensor");
  check(b.size() == 2, second, " must be a matrix, got ", b.size(), "-D tensor");
  check(a[1] == b[0], "mat1 and mat2 shapes cannot be multiplied (", times(a), " and ", times(b), ")");
}

Sizes batch_product(SizesView a, SizesView b) {
  check(a.size() == 3, "batch1 must be a 3D tensor, got ", a.size(), "D");
  check(b.size() == 3, "batch2 must be a 3D tensor, got ", b.size(), "D");
  check(a[0] == b[0] && a[2] == b[1], "Expected size for first two dimensions of batch2 tensor to be: [", a[0], ", ",
        a[2], "] but got: [", b[0], ", ", b[1], "].");
  return {a[0], a[1], b[2]};
}

// Returns `product`; requires that `input` broadcasts to it.
Sizes added(const Arg& input, Sizes product) {
  check(shape_rules::broadcast_sizes(sizes_of(input), product) == product, "The expanded size of the tensor ",
        sizes_of(input), " must match the existing size ", product);
  return product;
}

}  // namespace

namespace shape_rules {

Sizes matmul(const Arg& input, const Arg& other) {
  SizesView a = sizes_of(input), b = sizes_of(other);
  check(!a.empty() && !b.empty(), "both arguments to matmul need to be at least 1D, but they are ", a.size(), "D and ",
        b.size(), "D");
  if (a.size() == 1 && b.size() == 1) return dot(input, other);
  SymInt inner = b[b.size() == 1 ? 0 : b.size() - 2];
  if (a.back() != inner) {
    Sizes left(a.begin(), a.end()), right(b.begin(), b.end());
    if (b.size() == 1)
      fail(ErrorKind::kRuntime, "size mismatch, got input (", a[a.size() - 2], "), mat (", times(a), "), vec (", b[0],
           ")");
    if (a.size() == 1) left.insert(left.begin(), 1);
    fail(ErrorKind::kRuntime, "mat1 and mat2 shapes cannot be multiplied (", times(left), " and ", times(right), ")");
  }
  SizesView a_batch = a.subspan(0, a.size() > 2 ? a.size() - 2 : 0),
            b_batch = b.subspan(0, b.size() > 2 ? b.size() - 2 : 0);
  Sizes result = broadcast_sizes(a_batch, b_batch);
  if (a.size() > 1) result.push_back(a[a.size() - 2]);
  if (b.size() > 1) result.push_back(b.back());
  return result;
}

Sizes mm(const Arg& input, const Arg& other) {
  SizesView a = sizes_of(input), b = sizes_of(other);
  check_matrices(a, b, "self", "mat2");
  return {a[0], b[1]};
}

Sizes bmm(const Arg& input, const Arg& other) { return batch_product(sizes_of(input), sizes_of(other)); }

Sizes mv(const Arg& matrix, const Arg& vector) {
  SizesView m = sizes_of(matrix), v = sizes_of(vector);
  check(m.size() == 2 && v.size() == 1, "vector + matrix @ vector expected, got ", m.size(), ", ", v.size());
  check(m[1] == v[0], "size mismatch, got input (", m[0], "), mat (", times(m), "), vec (", v[0], ")");
  return {m[0]};
}

Sizes dot(const Arg& input, const Arg& other) {
  SizesView a = sizes_of(input), b = sizes_of(other);
  check(a.size() == 1 && b.size() == 1, "1D tensors expected, but got ", a.size(), "D and ", b.size(), "D tensors");
  check(a[0] == b[0], "inconsistent tensor size, expected tensor ", a, " and src ", b,
        " to have the same number of elements, but got ", a[0], " and ", b[0], " elements respectively");
  return {};
}

Sizes addmm(const Arg& input, const Arg& mat1, const Arg& mat2) {
  SizesView a = sizes_of(mat1), b = sizes_of(mat2);
  check_matrices(a, b, "mat1", "mat2");
  return added(input, {a[0], b[1]});
}

Sizes addmv(const Arg& input, const Arg& mat, const Arg& vec) { return added(input, mv(mat, vec)); }

Sizes baddbmm(const Arg& input, const Arg& batch1, const Arg& batch2) {
  return added(input, batch_product(sizes_of(batch1), sizes_of(batch2)));
}

Sizes addbmm(const Arg& input, const Arg& batch1, const Arg& batch2) {
  Sizes product = batch_product(sizes_of(batch1), sizes_of(batch2));
  return added(input, {product[1], product[2]});
}

Sizes outer(const Arg& input, const Arg& other) {
  SizesView a = sizes_of(input), b = sizes_of(other);
  check(a.size() == 1, "outer: Expected 1-D argument self, but got ", a.size(), "-D");
  check(b.size() == 1, "outer: Expected 1-D argument vec2, but got ", b.size(), "-D");
  return {a[0], b[0]};
}

Sizes addr(const Arg& input, const Arg& vec1, const Arg& vec2) { return added(input, outer(vec1, vec2)); }

Sizes kron(const Arg& input, const Arg& other) {
  Sizes a = copy_of(input), b = copy_of(other);
  a.insert(a.begin(), std::max(a.size(), b.size()) - a.size(), 1);
  b.insert(b.begin(), a.size() - b.size(), 1);
  for (size_t d = 0; d < a.size(); ++d) a[d] = checked_mul(a[d], b[d]);
  return a;
}

Sizes bilinear(const Arg& input1, const Arg& input2, const Arg& weight, const Arg& bias) {
  const SizesView a = sizes_of(input1), b = sizes_of(input2), w = sizes_of(weight);
  check(a.size() == b.size() && !a.empty(), "bilinear(): input dimensions do not match: got ", a.size(), " and ",
        b.size());
  check(w.size() == 3, "bilinear(): expected a weight with 3 dimensions, got ", w.size());
  for (size_t d = 0; d + 1 < a.size(); ++d) {
    check(a[d] == b[d], "bilinear(): input batch dimensions do not match at dim ", d, ": got ", a[d], " and ", b[d]);
  }
  check(a.back() == w[1], "bilinear(): input1 size does not match weight size: got ", a.back(), " but expected ", w[1]);
  check(b.back() == w[2], "bilinear(): input2 size does not match weight size: got ", b.back(), " but expected ", w[2]);
  check(bias.is_none() || (sizes_of(bias).size() == 1 && sizes_of(bias)[0] == w[0]),
        "bilinear(): bias size does not match weight size: got ",
        bias.is_none() || sizes_of(bias).empty() ? SymInt(0) : sizes_of(bias)[0], " but expected ", w[0]);
  Sizes result = copy_of(input1);
  result.back() = w[0];
  return result;
}

Sizes inner(const Arg& input, const Arg& other) {
  SizesView a = sizes_of(input), b = sizes_of(other);
  if (a.empty() || b.empty()) return broadcast_sizes(a, b);
  check(a.back() == b.back(), "inner() the last dimension must match on both input tensors but got shapes ", a, " and ",
        b);
  Sizes result(a.begin(), a.end() - 1);
  result.insert(result.end(), b.begin(), b.end() - 1);
  return result;
}

Sizes linear(const Arg& input, const Arg& weight, const Arg& bias) {
  SizesView x = sizes_of(input), w = sizes_of(weight);
  check(!x.empty(), "both arguments to linear need to be at least 1D, but they are 0D and ", w.size(), "D");
  check(w.size() == 1 || w.size() == 2, "linear: weight must be a matrix or a vector, got ", w);
  const SymInt features = w.size() == 1 ? SymInt(1) : w[0];
  if (x.back() != w.back()) {
    SymInt rows = 1;
    for (SymInt size : x.subspan(0, x.size() - 1)) rows *= size;
    fail(ErrorKind::kRuntime, "mat1 and mat2 shapes cannot be multiplied (", rows, "x", x.back(), " and ", w.back(),
         "x", features, ")");
  }
  Sizes result(x.begin(), x.end());
  if (w.size() == 1)
    result.pop_back();
  else
    result.back() = features;
  return bias.is_none() ? result : added(bias, result);
}

Sizes fused_linear(const Arg& input, const Arg& weight, const Arg& bias, const Arg& added,
                   std::string_view activation) {
  check(sizes_of(weight).size() == 2, "expected a weight that is a matrix, got ", sizes_of(weight));
  const Sizes result = linear(input, weight, bias);
  check(added.is_none() || sizes_of(added) == result, "expected added to have the result's size ", result);
  constexpr std::string_view kActivations[] = {"none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"};
  check(ErrorKind::kValue,
        std::find(std::begin(kActivations), std::end(kActivations), activation) != std::end(kActivations),
        "expected an activation none, relu, gelu, gelu_tanh, silu, sigmoid or tanh, got ", activation);
  return result;
}

Sizes trace(const Arg& input) {
  check(sizes_of(input).size() == 2, "trace: expected a matrix, but got tensor with dim ", sizes_of(input).size());
  return {};
}

Sizes cross(const Arg& input, const Arg& other, int64_t dim) {
  SizesView a = sizes_of(input), b = sizes_of(other);
  check(a.size() == b.size() && !a.empty(), "linalg.cross: inputs must have the same number of dimensions, got ",
        a.size(), " and ", b.size());
  const auto d = static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(a.size())));
  check(a[d] == 3 && b[d] == 3, "linalg.cross: inputs dimension ", dim, " must have length 3. Got ", a[d], " and ",
        b[d]);
  return broadcast(input, other);
}

Sizes cdist(const Arg& x1, const Arg& x2, double p) {
  SizesView a = sizes_of(x1), b = sizes_of(x2);
  check(a.size() >= 2 && b.size() >= 2, "cdist only supports at least 2D tensors, X1 got: ", a.size(),
        "D, X2 got: ", b.size(), "D");
  check(a.back() == b.back(), "X1 and X2 must have the same number of columns. X1: ", a.back(), " X2: ", b.back());
  check(p >= 0, "cdist only supports non-negative p values, got ", p);
  Sizes result = broadcast_sizes(a.subspan(0, a.size() - 2), b.subspan(0, b.size() - 2));
  result.push_back(a[a.size() - 2]);
  result.push_back(b[b.size() - 2]);
  return result;
}

Sizes distance(const Arg& input, const Arg& other) {
  broadcast(input, other);
  return {};
}

Sizes pairwise_distance(const Arg& x1, const Arg& x2, bool keepdim) {
  Sizes sizes = broadcast(x1, x2);
  if (sizes.empty()) return sizes;
  if (keepdim) {
    sizes.back() = 1;
  } else {
    sizes.pop_back();
  }
  return sizes;
}

Sizes diff(const Arg& input, SymInt n, int64_t dim) {
  Sizes result(sizes_of(input).begin(), sizes_of(input).end());
  check(!result.empty(), "diff expects input to be at least one-dimensional");
  check(n >= 0, "order must be non-negative but got ", n);
  SymInt& size = result[static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(result.size())))];
  size = larger(size - smaller(n, size), 0);
  return result;
}

Sizes cumulative_trapezoid(const Arg& y, const Arg& x, double dx, int64_t dim) {
  check(ErrorKind::kType, x.is_none() || dx == 1,
        "trapezoid() received an invalid combination of arguments: expected x or dx, but got both");
  Sizes sizes = copy_of(y);
  const auto at = static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(sizes.size())));
  check(ErrorKind::kIndex, !sizes.empty(), "Dimension specified as ", dim, " but tensor has no dimensions");
  const SymInt n = sizes[at], steps = larger(n - 1, 0);
  sizes[at] = steps;
  if (x.is_none()) return sizes;
  Sizes positions = copy_of(x);
  if (positions.size() != 1) {
    const auto own = static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(positions.size())));
    check(!positions.empty() && positions[own] == n, "trapezoid: There must be one `x` value for each sample point");
    positions[own] = steps;
    return broadcast_sizes(sizes, positions);
  }
  check(positions[0] == n, "trapezoid: There must be one `x` value for each sample point");
  return sizes;
}

Sizes trapezoid(const Arg& y, const Arg& x, double dx, int64_t dim) {
  Sizes sizes = cumulative_trapezoid(y, x, dx, dim);
  sizes.erase(sizes.begin() + wrap_dim(dim, static_cast<int64_t>(sizes.size())));
  return sizes;
}

}  // namespace shape_rules

namespace dtype_rules {

DType product_all(std::initializer_list<const Arg*> args) {
  std::optional<DType> common;
  for (const Arg* a : args) {
    if (a->kind != Arg::Kind::kTensor) continue;
    DType t = a->tensor->dtype;
    if (!common) common = t;
    check(*common == t, "expected m1 and m2 to have the same dtype, but got: ", cpp_type_name(*common),
          " != ", cpp_type_name(t));
  }
  DType t = common ? *common : default_float();
  check(t != DType::kBool, "\"addmm_impl_cpu_\" not implemented for 'Bool'");
  return t;
}

DType inner(const Arg& input, const Arg& other) {
  const bool scales = input.tensor->sizes.empty() || other.tensor->sizes.empty();
  return scales ? promote(input, other) : product(input, other);
}

DType activation(DType product, bool use_gelu) {
  require_real(product);
  return use_gelu ? require_floating(product) : product;
}

}  // namespace dtype_rules
}  // namespace tt
