#include <gtest/gtest.h>

#include <limits>

#include "engine/schema/float8.h"
#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

const DType kNarrow[] = {DType::kFloat8E4m3fn, DType::kFloat8E5m2};
const DType kOthers[] = {DType::kBool,   DType::kUInt8,   DType::kInt8,     DType::kInt16,     DType::kInt32,
                         DType::kInt64,  DType::kFloat16, DType::kBFloat16, DType::kFloat32,   DType::kFloat64,
                         DType::kUInt16, DType::kUInt32,  DType::kUInt64,   DType::kComplex64, DType::kComplex128};

Tensor bits_of(const Tensor& t) { return ops::view_of_dtype(ops::clone(t), DType::kUInt8); }

// All 256 bit patterns except NaNs, which integers cannot represent.
Tensor patterns(DType dtype) {
  const Tensor all = ops::view_of_dtype(ops::to_dtype(ops::arange(int64_t{256}), DType::kUInt8), dtype);
  return ops::masked_select(all, ops::isfinite(all));
}

// Numbers around every representable number of both formats, and beyond their range.
Tensor numbers() {
  Tensors all;
  for (DType dtype : kNarrow) {
    const Tensor own = ops::to_dtype(patterns(dtype), DType::kFloat32);
    for (double factor : {1.0, 1.0 + 1.0 / 16, 1.0 + 1.0 / 8, 1.07, 0.93, 2.0}) all.push_back(ops::mul(own, factor));
  }
  return ops::cat(all, 0);
}

TEST(CudaFloat8Test, CastsEqualCpu) {
  SimulatedEngine engine;
  const Tensor wide = numbers();
  for (DType dtype : kNarrow) {
    for (DType other : kOthers) {
      const bool is_float = has_gradients(other);
      // The conversion of out-of-range integers is unspecified.
      const Tensor source = ops::to_dtype(is_float ? wide : ops::clamp(wide, 0.0, 127.0), other);
      expect_cpu_and_gpu_agree(
          {source}, 0, [&](const Tensors& t) { return Tensors{bits_of(ops::to_dtype(t[0], dtype))}; },
          std::string(name(other)) + " to " + std::string(name(dtype)));
      expect_cpu_and_gpu_agree(
          {source}, 0,
          [&](const Tensors& t) {
            const Tensor narrow = ops::to_dtype(is_float ? t[0] : ops::clone(t[0]), dtype);
            return Tensors{ops::to_dtype(ops::narrow(narrow, 0, 3, 40), other)};
          },
          std::string(name(dtype)) + " to " + std::string(name(other)));
    }
    for (double special : {HUGE_VAL, -HUGE_VAL, std::numeric_limits<double>::quiet_NaN(), -0.0}) {
      expect_cpu_and_gpu_agree({ops::full({3}, special)}, 0,
                               [&](const Tensors& t) { return Tensors{bits_of(ops::to_dtype(t[0], dtype))}; });
    }
  }
}

TEST(CudaFloat8Test, ConvertsBetweenFormats) {
  SimulatedEngine engine;
  for (const auto& [from, to] : {std::pair(kNarrow[0], kNarrow[1]), std::pair(kNarrow[1], kNarrow[0])}) {
    expect_cpu_and_gpu_agree({numbers()}, 0, [from = from, to = to](const Tensors& t) {
      return Tensors{bits_of(ops::to_dtype(ops::to_dtype(t[0], from), to))};
    });
  }
}

TEST(CudaFloat8Test, MovesAndCompares) {
  SimulatedEngine engine;
  for (DType dtype : kNarrow) {
    const Tensor x = filled({6, 8}, DType::kFloat32), mask = ops::gt(x, int64_t{0});
    const Tensor places = ops::to_dtype(ops::arange(int64_t{3}), DType::kInt64);
    expect_cpu_and_gpu_agree({x, mask, places}, 0, [&](const Tensors& t) {
      const Tensor a = ops::to_dtype(t[0], dtype), b = ops::transpose(ops::transpose(ops::flip(a, {0}), 0, 1), 0, 1);
      const Tensor put = ops::index_put(a, {t[2]}, ops::narrow(b, 0, 0, 3));
      return Tensors{bits_of(ops::cat({a, b}, 1)),
                     bits_of(ops::where(t[1], a, b)),
                     ops::eq(a, b),
                     ops::ne(a, 1.0),
                     bits_of(ops::masked_select(a, t[1])),
                     bits_of(put),
                     bits_of(ops::full_like(a, 416.0)),
                     bits_of(ops::index_select(a, 1, t[2])),
                     ops::isfinite(a)};
    });
    EXPECT_THROW(ops::add(ops::to_dtype(x, dtype), ops::to_dtype(x, dtype)), Error);
  }
}

TEST(CudaFloat8Test, ScaledProducts) {
  SimulatedEngine engine;
  const Tensor half = ops::full({}, 0.5), three = ops::full({1, 1}, 3.0);
  const Tensor rows = filled({5, 1}, DType::kFloat32), columns = filled({1, 16}, DType::kFloat32);
  const std::pair<Tensor, Tensor> scales[] = {{half, three}, {rows, columns}};
  for (DType left : kNarrow) {
    for (DType out : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, kNarrow[0], kNarrow[1]}) {
      for (const auto& [scale_a, scale_b] : scales) {
        for (bool with_bias : {false, true}) {
          if (with_bias && out == DType::kFloat32) continue;
          const DType bias_type = out == DType::kFloat16 ? out : DType::kBFloat16;
          const Tensor bias = with_bias ? filled({16}, bias_type) : Tensor();
          const double tolerance = is_float8(out) ? 0.26 : tolerance_of(out);
          expect_cpu_and_gpu_agree(
              {filled({5, 32}, DType::kFloat32), filled({16, 32}, DType::kFloat32), scale_a, scale_b, bias}, tolerance,
              [&](const Tensors& t) {
                const Tensor a = ops::to_dtype(t[0], left), b = ops::to_dtype(t[1], DType::kFloat8E4m3fn);
                const Tensor last = ops::full_like(t[2], 0.5);
                const Tensor result_scale = ops::reshape(ops::narrow(ops::reshape(last, {-1}), 0, 0, 1), Sizes{});
                const Tensor product = ops::scaled_mm(a, ops::transpose(b, 0, 1), ops::clone(t[2]), ops::clone(t[3]),
                                                      t[4], result_scale, out);
                return Tensors{ops::to_dtype(product, DType::kFloat32)};
              },
              std::string(name(left)) + " into " + std::string(name(out)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tt::cuda
