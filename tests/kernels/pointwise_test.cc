// Pointwise operators in every dtype and layout, compared with a loop over their elements.

#include <cmath>
#include <functional>
#include <limits>

#include "engine/dispatch/ops.h"
#include "tests/kernels/backend.h"

namespace tt {
namespace {

using namespace testing;  // NOLINT: tensors.h

constexpr DType kAll[] = {DType::kBool,  DType::kUInt8,   DType::kInt8,     DType::kInt16,   DType::kInt32,
                          DType::kInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

std::string text(DType dtype) { return std::string(name(dtype)); }

class Pointwise : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { have_backend(); }
};

// The element of `t`, broadcast to `sizes`, at index `linear` in row-major order.
double element(const Tensor& t, SizesView sizes, int64_t linear) {
  int64_t offset = 0;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    const int64_t index = linear % sizes[d], own = d - (static_cast<int64_t>(sizes.size()) - t.dim());
    linear /= sizes[d];
    if (own >= 0 && t.size(own) != 1) offset += index * t.stride(own);
  }
  return at(t, offset);
}

using Scalars = std::function<double(double, double)>;

// A number converted to a dtype and back.
double stored(double value, DType dtype) {
  const Tensor t = empty({}, dtype, Device{});
  if (dtype == DType::kBool)
    put(t, 0, value != 0);
  else if (is_integral(dtype))
    with_element(dtype, [&]<typename T>(std::type_identity<T>) {
      t.data_as<T>()[0] = static_cast<T>(static_cast<int64_t>(value));
    });
  else
    put(t, 0, value);
  return at(t, 0);
}

void expect_elements(const Tensor& got, const Tensor& a, const Tensor& b, const Scalars& f, const std::string& what) {
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double want = stored(f(element(a, got.sizes(), i), element(b, got.sizes(), i)), got.dtype());
    ASSERT_EQ(element(got, got.sizes(), i), want) << what << " at " << i;
  }
}

Tensor every_second_column(const Tensor& t) {
  return view_of(t, {{t.size(0), t.size(1) / 2}, {t.stride(0), 2 * t.stride(1)}, t->offset + t.stride(1), true});
}

struct Layout {
  const char* name;
  std::function<std::pair<Tensor, Tensor>(DType)> make;
};

const Layout kLayouts[] = {
    {"contiguous",
     [](DType d) {
       return std::pair{filled({7, 9}, d), filled({7, 9}, d)};
     }},
    {"row",
     [](DType d) {
       return std::pair{filled({7, 9}, d), filled({9}, d)};
     }},
    {"column",
     [](DType d) {
       return std::pair{filled({7, 9}, d), filled({7, 1}, d)};
     }},
    {"both broadcast",
     [](DType d) {
       return std::pair{filled({7, 1}, d), filled({1, 9}, d)};
     }},
    {"broadcast, then expanded",
     [](DType d) {
       const Tensor column = filled({200, 1}, d);
       return std::pair{filled({200, 503}, d), view_of(column, {{200, 503}, {1, 0}, 0, true})};
     }},
    {"zero-dim",
     [](DType d) {
       return std::pair{filled({7, 9}, d), filled({}, d)};
     }},
    {"both zero-dim",
     [](DType d) {
       return std::pair{filled({}, d), filled({}, d)};
     }},
    {"transposed",
     [](DType d) {
       return std::pair{filled({7, 9}, d), transposed(filled({9, 7}, d), 0, 1)};
     }},
    {"both transposed",
     [](DType d) {
       return std::pair{transposed(filled({9, 7}, d), 0, 1), transposed(filled({9, 7}, d), 0, 1)};
     }},
    {"three dimensions",
     [](DType d) {
       return std::pair{transposed(filled({3, 5, 4}, d), 0, 2), filled({4, 1, 3}, d)};
     }},
    {"strided",
     [](DType d) {
       return std::pair{every_second_column(filled({7, 20}, d)), every_second_column(filled({7, 20}, d))};
     }},
    {"empty",
     [](DType d) {
       return std::pair{filled({0, 9}, d), filled({9}, d)};
     }},
    {"long rows",
     [](DType d) {
       return std::pair{filled({3, 1003}, d), filled({1003}, d)};
     }},
    {"long strided rows",
     [](DType d) {
       return std::pair{every_second_column(filled({3, 2006}, d)), filled({3, 1003}, d)};
     }},
    {"many short rows",
     [](DType d) {
       return std::pair{filled({700, 3}, d), filled({3}, d)};
     }},
    {"parallel",
     [](DType d) {
       return std::pair{filled({300001}, d), filled({300001}, d)};
     }},
};

TEST_F(Pointwise, AddsEveryDtypeInEveryLayout) {
  for (DType dtype : kAll) {
    for (const Layout& layout : kLayouts) {
      auto [a, b] = layout.make(dtype);
      const std::string what = text(dtype) + " " + layout.name;
      const Tensor sum = ops::add(a, b);
      ASSERT_EQ(sum.dtype(), dtype) << what;
      expect_elements(
          sum, a, b, [](double x, double y) { return x + y; }, what);
    }
  }
}

TEST_F(Pointwise, ComparesToBooleans) {
  for (DType dtype : kAll) {
    for (const Layout& layout : kLayouts) {
      auto [a, b] = layout.make(dtype);
      const Tensor less = ops::lt(a, b);
      ASSERT_EQ(less.dtype(), DType::kBool);
      expect_elements(
          less, a, b, [](double x, double y) { return x < y; }, text(dtype) + layout.name);
    }
  }
}

TEST_F(Pointwise, PromotesEveryPairOfDtypes) {
  for (DType left : kAll) {
    for (DType right : kAll) {
      const Tensor a = filled({5, 7}, left), b = filled({5, 7}, right);
      const Tensor product = ops::mul(a, b);
      ASSERT_EQ(product.dtype(), promote(left, right));
      expect_elements(
          product, a, b, [](double x, double y) { return x * y; }, text(left) + " " + text(right));
    }
  }
}

TEST_F(Pointwise, AcceptsNumbersForTensors) {
  const Tensor a = filled({6, 11}), i = filled({6, 11}, DType::kInt16);
  expect_elements(
      ops::sub(a, 1.5), a, a, [](double x, double) { return x - 1.5; }, "float");
  expect_elements(
      ops::add(i, 3, 2), i, i, [](double x, double) { return x + 6; }, "int and alpha");
  const Tensor mixed = ops::mul(i, 0.5);
  EXPECT_EQ(mixed.dtype(), DType::kFloat32);
  expect_elements(
      mixed, i, i, [](double x, double) { return x * 0.5; }, "int and float");
}

TEST_F(Pointwise, WrapsAround) {
  EXPECT_EQ(at(ops::add(values({1}, {200}, DType::kUInt8), values({1}, {100}, DType::kUInt8)), 0), 44);
  EXPECT_EQ(at(ops::neg(values({1}, {1}, DType::kUInt8)), 0), 255);
  EXPECT_EQ(at(ops::mul(values({1}, {100}, DType::kInt8), values({1}, {2}, DType::kInt8)), 0), -56);
  const Tensor least = empty({1}, DType::kInt32, Device{});
  least.data_as<int32_t>()[0] = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(ops::neg(least).data_as<int32_t>()[0], std::numeric_limits<int32_t>::min());
  EXPECT_EQ(ops::floor_divide(least, -1).data_as<int32_t>()[0], std::numeric_limits<int32_t>::min());
}

TEST_F(Pointwise, DividesLikePython) {
  const Tensor a = values({4}, {7, -7, 7, -7}, DType::kInt64), b = values({4}, {2, 2, -2, -2}, DType::kInt64);
  expect_elements(
      ops::floor_divide(a, b), a, b, [](double x, double y) { return std::floor(x / y); }, "floor");
  expect_elements(
      ops::remainder(a, b), a, b, [](double x, double y) { return x - y * std::floor(x / y); }, "remainder");
  expect_elements(
      ops::fmod(a, b), a, b, [](double x, double y) { return std::fmod(x, y); }, "fmod");
  const Tensor x = values({4}, {7.5, -7.5, 7.5, -7.5}), y = values({4}, {2, 2, -2, -2});
  expect_elements(
      ops::floor_divide(x, y), x, y, [](double p, double q) { return std::floor(p / q); }, "floor, float");
  expect_elements(
      ops::remainder(x, y), x, y, [](double p, double q) { return p - q * std::floor(p / q); }, "float");
}

TEST_F(Pointwise, RaisesOnIntegersDividedByZero) {
  const Tensor a = filled({3, 5}, DType::kInt32), zero = constant({1}, 0, DType::kInt32);
  for (auto divide : {&ops::floor_divide, &ops::trunc_divide, &ops::remainder, &ops::fmod}) {
    EXPECT_THROW(divide(a, zero), Error);
    EXPECT_THROW(divide(a, 0), Error);
  }
  EXPECT_TRUE(std::isinf(at(ops::true_divide(values({1}, {1}, DType::kInt32), zero), 0)));
}

TEST_F(Pointwise, KeepsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor a = values({3}, {nan, 1, nan}, dtype), b = values({3}, {1, nan, nan}, dtype);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(std::isnan(at(ops::maximum(a, b), i)));
      EXPECT_TRUE(std::isnan(at(ops::minimum(a, b), i)));
      EXPECT_EQ(std::isnan(at(ops::fmax(a, b), i)), i == 2);
      EXPECT_EQ(at(ops::ne(a, a), i), i != 1);
      EXPECT_EQ(at(ops::lt(a, b), i), 0);
    }
    EXPECT_TRUE(std::isnan(at(ops::relu(a), 0)));
    EXPECT_EQ(at(ops::sign(a), 0), 0);
  }
}

// An element's result must not depend on its neighbours or its position.
TEST_F(Pointwise, ResultIsIndependentOfPosition) {
  const Tensor x = filled({1027}, DType::kFloat32), y = ops::tanh(x);
  for (int64_t i : {0, 1, 15, 16, 511, 512, 1023, 1026}) {
    const Tensor one = view_of(x, {{1}, {1}, i, true});
    ASSERT_EQ(at(ops::tanh(one), 0), at(y, i)) << i;
  }
}

TEST_F(Pointwise, FunctionsAreWithinAFewUlps) {
  struct Row {
    const char* name;
    Tensor (*op)(const Operand&);
    double (*f)(double);
  };
  const Row rows[] = {{"exp", &ops::exp, &std::exp},       {"expm1", &ops::expm1, &std::expm1},
                      {"sin", &ops::sin, &std::sin},       {"cos", &ops::cos, &std::cos},
                      {"tanh", &ops::tanh, &std::tanh},    {"erf", &ops::erf, &std::erf},
                      {"atan", &ops::atan, &std::atan},    {"sinh", &ops::sinh, &std::sinh},
                      {"floor", &ops::floor, &std::floor}, {"round", &ops::round_half_even, &std::rint}};
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor x = filled({1003}, dtype);
    for (const Row& row : rows) {
      const Tensor y = row.op(x);
      const double ulp = dtype == DType::kFloat32 ? 0x1p-23 : 0x1p-52;
      for (int64_t i = 0; i < x.numel(); ++i) {
        const double want = row.f(at(x, i));
        ASSERT_NEAR(at(y, i), want, 5 * ulp * std::max(std::fabs(want), 1e-30)) << row.name << " of " << at(x, i);
      }
    }
  }
}

TEST_F(Pointwise, IncompleteGammasHaveCorrectLimits) {
  const double inf = INFINITY, nan = NAN;
  const std::vector<double> a = {0, 1, 0, inf, inf, 1, -1, 1, nan, 2, 1e-3, 1e4, 1e4, 0.5};
  const std::vector<double> x = {1, 0, 0, 1, inf, inf, 1, -1, 1, nan, 1e-3, 2e4, 1e3, 1.05};
  // Reference values from SciPy, except the last four.
  const std::vector<double> lower = {1, 0, nan, 0, nan, 1, nan, nan, nan, nan, 0.993688, 1, 0, 0.8527};
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const int64_t n = static_cast<int64_t>(a.size());
    const Tensor shapes = values({n}, a, dtype), points = values({n}, x, dtype);
    const Tensor p = ops::igamma(shapes, points), q = ops::igammac(shapes, points);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(std::isnan(at(p, i)), std::isnan(lower[i])) << i;
      ASSERT_EQ(std::isnan(at(q, i)), std::isnan(lower[i])) << i;
      if (std::isnan(lower[i])) continue;
      ASSERT_NEAR(at(p, i), lower[i], 1e-4) << i;
      ASSERT_NEAR(at(q, i), 1 - lower[i], 1e-4) << i;
    }
  }
}

// a.op_(b): writes the result to a.
void call_into(const char* op, const Tensor& target, std::vector<Arg> args) {
  Call call;
  call.op = find_op(op);
  call.args = args;
  call.outputs.push_back(target);
  call.into = true;
  Dispatcher::instance().dispatch(call);
}

Tensor clone(const Tensor& t) {
  const Tensor copy = empty(t.sizes(), t.dtype(), Device{});
  for (int64_t i = 0; i < t.numel(); ++i) put(copy, i, element(t, t.sizes(), i));
  return copy;
}

TEST_F(Pointwise, WritesInPlace) {
  for (DType dtype : kAll) {
    const Tensor a = filled({40, 30}, dtype), b = filled({30}, dtype), before = clone(a);
    call_into("add", a, {a.get(), b.get(), 1});
    expect_elements(
        a, before, b, [](double x, double y) { return x + y; }, text(dtype));
    const Tensor t = transposed(filled({8, 6}, dtype), 0, 1), t_before = clone(t);
    call_into("mul", t, {t.get(), t.get()});
    expect_elements(
        t, t_before, t_before, [](double x, double y) { return x * y; }, "transposed, by itself");
  }
}

TEST_F(Pointwise, WritesToOverlappingAndConvertingTargets) {
  const Tensor base = filled({100});
  const Tensor before = clone(base);
  const Tensor head = view_of(base, {{99}, {1}, 0, true}), tail = view_of(base, {{99}, {1}, 1, true});
  call_into("add", tail, {head.get(), tail.get(), 1});  // would be a running sum if writes preceded reads
  for (int64_t i = 0; i < 99; ++i) ASSERT_EQ(at(base, i + 1), at(before, i) + at(before, i + 1)) << i;

  const Tensor wide = empty({3}, DType::kInt64, Device{});
  const Tensor x = values({3}, {200, 100, 1}, DType::kUInt8);
  call_into("add", wide, {x.get(), x.get(), 1});
  EXPECT_EQ(at(wide, 0), 144);  // uint8 wraps around before the conversion to int64
  EXPECT_EQ(at(wide, 1), 200);

  const Tensor strided = every_second_column(constant({5, 12}, 7)), a = filled({5, 6});
  call_into("mul", strided, {a.get(), Arg(2.0)});
  expect_elements(
      strided, a, a, [](double p, double) { return 2 * p; }, "strided target");
}

bool broadcasts_to(const Tensor& t, SizesView sizes) {
  if (t.dim() > static_cast<int64_t>(sizes.size())) return false;
  for (int64_t d = 1; d <= t.dim(); ++d) {
    if (t.size(-d) != 1 && t.size(-d) != sizes[sizes.size() - d]) return false;
  }
  return true;
}

TEST_F(Pointwise, AssignsEveryPairOfDtypesAndLayouts) {
  for (DType from : kAll) {
    for (DType to : kAll) {
      for (const Layout& layout : kLayouts) {
        auto [shape, source] = layout.make(from);
        const Tensor target = empty(shape.sizes(), to, Device{});
        if (broadcasts_to(source, target.sizes())) {
          call_into("assign", target, {target.get(), source.get()});
          expect_elements(
              target, source, source, [](double x, double) { return x; },
              text(from) + " to " + text(to) + " " + layout.name);
        }
      }
    }
  }
}

TEST_F(Pointwise, TransposesInTiles) {
  for (DType dtype : {DType::kBool, DType::kFloat16, DType::kFloat32, DType::kInt64}) {
    for (Sizes sizes :
         {Sizes{67, 45}, Sizes{5, 33, 70}, Sizes{200, 3}, Sizes{3, 200}, Sizes{3, 1031}, Sizes{2, 3, 157}}) {
      const Tensor source = transposed(filled(sizes, dtype), -2 + static_cast<int64_t>(sizes.size()), sizes.size() - 1);
      const Tensor target = empty(source.sizes(), dtype, Device{});
      call_into("assign", target, {target.get(), source.get()});
      expect_elements(
          target, source, source, [](double x, double) { return x; }, text(dtype));
    }
  }
}

TEST_F(Pointwise, WritesLargeResultsWithNontemporalStores) {
  const Tensor a = constant({12'000'000}, 1.5), sum = ops::add(a, 1);
  for (int64_t i : {int64_t{0}, int64_t{511}, int64_t{6'000'001}, sum.numel() - 1}) EXPECT_EQ(at(sum, i), 2.5);
  double total = 0;
  for (int64_t i = 0; i < sum.numel(); ++i) total += sum.data_as<float>()[i];
  EXPECT_EQ(total, 2.5 * 12'000'000);
}

}  // namespace
}  // namespace tt
