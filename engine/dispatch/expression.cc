#include "engine/dispatch/expression.h"

#include <algorithm>

namespace tt {

const Sizes& sizes_of(const Operand& t) {
  static const Sizes kNone;
  return t.arg().kind == Arg::Kind::kTensor ? t.arg().tensor->sizes : kNone;
}

DType dtype_of(const Operand& t) {
  return t.arg().kind == Arg::Kind::kTensor ? t.arg().tensor->dtype : t.arg().scalar().dtype();
}

int64_t numel_of(const Operand& t) { return t.arg().kind == Arg::Kind::kTensor ? t.arg().tensor->numel() : 1; }

Sizes slice_list(SizesView list, std::optional<int64_t> begin, std::optional<int64_t> end) {
  int64_t size = static_cast<int64_t>(list.size());
  auto clip = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  int64_t from = clip(begin.value_or(0)), to = std::max(from, clip(end.value_or(size)));
  return Sizes(list.begin() + from, list.begin() + to);
}

Sizes concatenate(SizesView a, SizesView b) {
  Sizes both(a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

Floats floats_of(SizesView list) { return Floats(list.begin(), list.end()); }

namespace number {

int64_t floordiv(int64_t a, int64_t b) {
  check(ErrorKind::kValue, b != 0, "integer division by zero, got ", a, " // 0");
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t mod(int64_t a, int64_t b) { return a - b * floordiv(a, b); }

namespace {
bool both_real(const Scalar& a, const Scalar& b) { return a.is_real() && b.is_real(); }
bool both_integral(const Scalar& a, const Scalar& b) {
  return a.category() <= Category::kInteger && b.category() <= Category::kInteger;
}
template <typename F>
Scalar combine(const Scalar& a, const Scalar& b, F f) {
  if (!both_real(a, b)) return Scalar(f(a.to_complex(), b.to_complex()));
  return both_integral(a, b) ? Scalar(f(a.to_int(), b.to_int())) : Scalar(f(a.to_double(), b.to_double()));
}
}  // namespace

Scalar neg(const Scalar& a) { return sub(Scalar(int64_t{0}), a); }
Scalar add(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x + y; });
}
Scalar sub(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x - y; });
}
Scalar mul(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x * y; });
}
Scalar div(const Scalar& a, const Scalar& b) {
  return both_real(a, b) ? Scalar(a.to_double() / b.to_double()) : Scalar(a.to_complex() / b.to_complex());
}
Scalar pow(const Scalar& a, const Scalar& b) {
  return both_real(a, b) ? Scalar(std::pow(a.to_double(), b.to_double()))
                         : Scalar(std::pow(a.to_complex(), b.to_complex()));
}

}  // namespace number
}  // namespace tt
