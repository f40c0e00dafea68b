// Results written to existing tensors, with the CPU's kernels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/dispatch/operand.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "kernels/cpu/cpu.h"

namespace tt {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

struct OutVariantTest : testing::Test {
  static void SetUpTestSuite() { cpu::register_backend(Dispatcher::instance()); }

  // 1, 2, 3, ...
  static Tensor counting(SizesView sizes, DType dtype = DType::kFloat32) {
    Tensor t = empty(sizes, dtype, {});
    if (dtype == DType::kFloat32) std::iota(t.data_as<float>(), t.data_as<float>() + t.numel(), 1.0f);
    if (dtype == DType::kFloat64) std::iota(t.data_as<double>(), t.data_as<double>() + t.numel(), 1.0);
    if (dtype == DType::kInt64) std::iota(t.data_as<int64_t>(), t.data_as<int64_t>() + t.numel(), 1);
    return t;
  }
  template <typename T = float>
  static std::vector<T> values(const Tensor& t) {
    return {t.data_as<T>(), t.data_as<T>() + t.numel()};
  }
  static void add_into(const Operand& x, const Operand& y, const Tensor& target) {
    const Arg args[] = {x.arg(), y.arg(), int64_t{1}};
    Tensors results = ops::call(op_id::kAdd, args, {&target, 1});
    ASSERT_TRUE(results[0].same(target));
  }
  static std::string error_of(const Operand& x, const Operand& y, const Tensor& target) {
    try {
      add_into(x, y, target);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
      return e.message();
    }
    return "no error";
  }

  Context context;
  ContextScope scope{&context};
};

TEST_F(OutVariantTest, InPlaceWritesSameBytesAndCountsWrite) {
  Tensor x = counting({4});
  void* bytes = x.data();
  uint32_t version = x.version();
  add_into(x, 10.0, x);
  EXPECT_EQ(x.data(), bytes);
  EXPECT_THAT(values(x), ElementsAre(11, 12, 13, 14));
  EXPECT_GT(x.version(), version);
}

TEST_F(OutVariantTest, WritesToOtherLayouts) {
  Tensor base = counting({3, 2});
  Tensor transposed = view_of(base, {{2, 3}, {1, 2}, 0, true});
  add_into(counting({2, 3}), 0, transposed);
  EXPECT_THAT(values(base), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(OutVariantTest, CastsToWiderDTypes) {
  Tensor floats = counting({3}, DType::kFloat64);
  add_into(counting({3}, DType::kInt64), counting({3}, DType::kInt64), floats);
  EXPECT_THAT(values<double>(floats), ElementsAre(2.0, 4.0, 6.0));
}

TEST_F(OutVariantTest, PartialOverlapUsesTemporary) {
  Tensor x = counting({5});
  Tensor head = view_of(x, {{4}, {1}, 0, true}), tail = view_of(x, {{4}, {1}, 1, true});
  add_into(head, tail, tail);
  EXPECT_THAT(values(x), ElementsAre(1, 3, 5, 7, 9));
}

TEST_F(OutVariantTest, BroadcastAliasIsReadBeforeWrite) {
  Tensor x = counting({3});
  Tensor first = view_of(x, {{3}, {0}, 0, true});
  add_into(x, first, x);
  EXPECT_THAT(values(x), ElementsAre(2, 3, 4));
}

TEST_F(OutVariantTest, LargeOverlapIsCorrect) {
  constexpr int64_t kCount = 100000;
  Tensor x = empty({kCount + 1}, DType::kFloat32, {});
  std::fill_n(x.data_as<float>(), kCount + 1, 1.0f);
  Tensor head = view_of(x, {{kCount}, {1}, 0, true}), tail = view_of(x, {{kCount}, {1}, 1, true});
  add_into(head, tail, tail);
  x.data_as<float>()[0] = 2;
  EXPECT_THAT(values(x), Each(2.0f));
}

TEST_F(OutVariantTest, CopiesConvertAndBroadcast) {
  Tensor target = counting({2, 3});
  copy_into(target, view_of(counting({3}, DType::kFloat64), {{2, 3}, {0, 1}, 0, true}));
  EXPECT_THAT(values(target), ElementsAre(1, 2, 3, 1, 2, 3));
}

TEST_F(OutVariantTest, RejectsInvalidOutTensors) {
  Tensor x = counting({2, 3});
  EXPECT_EQ(error_of(x, 1, counting({3})), "[add] output with shape [3] doesn't match the broadcast shape [2, 3]");
  EXPECT_EQ(error_of(x, 1, counting({2, 3}, DType::kInt64)),
            "[add] result type Float can't be cast to the desired output type Long");
  Tensor expanded = view_of(counting({3}), {{2, 3}, {0, 1}, 0, true});
  EXPECT_THAT(error_of(x, 1, expanded), HasSubstr("more than one element of the written-to tensor"));
  Tensor leaf = counting({2, 3});
  leaf->requires_grad = true;
  EXPECT_EQ(error_of(x, 1, leaf), "[add] a leaf Variable that requires grad is being used in an in-place operation.");
  GradMode off(false);
  EXPECT_EQ(error_of(x, 1, leaf), "no error");
}

TEST_F(OutVariantTest, DataDependentResultsRequireEqualSizes) {
  Tensor x = counting({3});
  x.data_as<float>()[1] = 0;
  const Arg args[] = {x.get()};
  Tensor fits = counting({2, 1}, DType::kInt64), small = counting({1, 1}, DType::kInt64);
  ops::call(op_id::kNonzero, args, {&fits, 1});
  EXPECT_THAT(values<int64_t>(fits), ElementsAre(0, 2));
  EXPECT_THROW(ops::call(op_id::kNonzero, args, {&small, 1}), Error);
}

TEST_F(OutVariantTest, WritesListToEqualNumberOfTensors) {
  Tensor x = counting({3});
  const Arg args[] = {x.get(), int64_t{1}, int64_t{0}};
  Tensors two = {counting({1}), counting({1})};
  EXPECT_THROW(ops::call(op_id::kSplit, args, two), Error);
  Tensors three = {counting({1}), counting({1}), counting({1})};
  ops::call(op_id::kSplit, args, three);
  EXPECT_THAT(values(three[2]), ElementsAre(3));
}

TEST_F(OutVariantTest, RejectsViewBeyondStorage) {
  Tensor x = counting({4});
  for (const Geometry& g : {Geometry{{5}, {1}, 0}, Geometry{{1}, {1}, 4}, Geometry{{2}, {4}, 0}, Geometry{{1}, {1}, -1},
                            Geometry{{int64_t{1} << 62}, {8}, 0}, Geometry{{2, 2}, {3, 1}, 0}}) {
    EXPECT_THROW(view_of(x, g), Error) << to_string(SizesView(g.sizes));
  }
  EXPECT_NO_THROW(view_of(x, {{4}, {1}, 0}));
  EXPECT_NO_THROW(view_of(x, {{0}, {1}, 4}));
  EXPECT_NO_THROW(view_of(x, {{100}, {0}, 3}));
}

}  // namespace
}  // namespace tt
