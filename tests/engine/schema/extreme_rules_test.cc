// Rules with zero-dim tensors, sizes near 2^63 and extreme integers: results or errors as in PyTorch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/schema/checked_math.h"
#include "tests/engine/schema/rule_runner.h"

namespace tt {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

class ExtremeRulesTest : public testing::Test {
 protected:
  RuleRunner infer_;
  Arg t(std::initializer_list<int64_t> sizes, DType dtype = DType::kFloat32) {
    return infer_.tensor(Sizes(sizes), dtype);
  }
  Arg n(std::initializer_list<int64_t> list) { return infer_.ints(list); }
};

TEST_F(ExtremeRulesTest, CheckedArithmeticThrows) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_mul(kMin / 2, 2), kMin);
  EXPECT_EQ(checked_sub(-1, kMax), kMin);
  EXPECT_THROW(checked_add(kMax, 1), Error);
  EXPECT_THROW(checked_mul(kMin, -1), Error);
  EXPECT_THROW(checked_sub(0, kMin), Error);
  EXPECT_EQ(magnitude(kMin), uint64_t{1} << 63);
  EXPECT_EQ(scaled_stride(kMax, 2), 1);
  EXPECT_EQ(added_stride(kMax, kMax), 1);
}

TEST_F(ExtremeRulesTest, ZeroDimTensorsCountAsOneDimension) {
  EXPECT_EQ(infer_("movedim", {t({}), n({0}), n({-1})}), "float32[]");
  EXPECT_EQ(infer_("movedim", {t({}), n({}), n({})}), "float32[]");
  EXPECT_THAT(infer_("movedim", {t({}), n({0, -1}), n({0, -1})}), HasSubstr("repeated dim in `source`"));
  EXPECT_THAT(infer_("movedim", {t({}), n({0}), n({1})}), StartsWith("IndexError: [movedim] Dimension out of range"));
  EXPECT_EQ(infer_("unfold", {t({}), int64_t{0}, int64_t{1}, int64_t{1}}), "float32[1]");
  EXPECT_EQ(infer_("unfold", {t({}), int64_t{0}, int64_t{0}, kMax}), "float32[0]");
  EXPECT_THAT(infer_("unfold", {t({}), int64_t{0}, int64_t{-2}, int64_t{1}}), HasSubstr("must be >= 0"));
  EXPECT_THAT(infer_("unfold", {t({}), int64_t{0}, int64_t{2}, int64_t{1}}), HasSubstr("maximum size"));
  EXPECT_THAT(infer_("unfold", {t({}), int64_t{0}, int64_t{1}, int64_t{0}}), HasSubstr("step"));
}

TEST_F(ExtremeRulesTest, ChecksDiagonalOffsets) {
  for (int64_t offset : {kMin, kMin + 1, kMax, int64_t{1} << 31}) {
    EXPECT_THAT(infer_("diag_embed", {t({2}), offset, int64_t{0}, int64_t{1}}), HasSubstr("less than 2^31"));
    EXPECT_THAT(infer_("diag", {t({2}), offset}), HasSubstr("less than 2^31"));
    EXPECT_EQ(infer_("diagonal", {t({2, 3}), offset, int64_t{0}, int64_t{1}}), "float32[0]");
  }
}

TEST_F(ExtremeRulesTest, RejectsOversizedResults) {
  EXPECT_THAT(infer_("pad", {t({2}), n({kMin, kMin}), int64_t{0}}), HasSubstr("negative output size"));
  EXPECT_THAT(infer_("pad", {t({2}), n({kMax, kMax}), int64_t{0}}), HasSubstr("negative output size"));
  EXPECT_EQ(infer_("pad", {t({5}), n({-2, -2}), int64_t{0}}), "float32[1]");
  EXPECT_THAT(infer_("unflatten", {t({4}), int64_t{0}, n({int64_t{1} << 32, int64_t{1} << 32})}),
              HasSubstr("overflow"));
  EXPECT_THAT(infer_("unflatten", {t({4}), int64_t{0}, n({-1, -1})}), HasSubstr("only one dimension"));
  EXPECT_THAT(infer_("cat", {infer_.tensors({t({kMax}, DType::kBool), t({1}, DType::kBool)}), int64_t{0}}),
              HasSubstr("overflow"));
  EXPECT_THAT(infer_("max_pool2d", {t({1, 1, kMax}, DType::kUInt8), n({4, 4}), n({1, 1}), n({2, 2})}),
              HasSubstr("overflow"));
  EXPECT_THAT(infer_("as_strided", {t({2}), n({2}), n({kMax}), int64_t{0}}), HasSubstr("overflowed"));
  EXPECT_THAT(infer_("as_strided", {t({2}), n({0, 3}), n({1, kMax / 2}), int64_t{0}}), HasSubstr("overflowed"));
  EXPECT_THAT(infer_("as_strided", {t({2}), n({0}), n({1}), kMax}), HasSubstr("overflowed"));
  // Sizes passed as integers by the client, not taken from a tensor.
  EXPECT_THAT(infer_("convolution_weight",
                     {t({2, 6, 5}), t({2, 4, 7}), n({6, kMax / 3, 3}), n({1}), n({0}), n({1}), int64_t{6}}),
              HasSubstr("overflow"));
  EXPECT_EQ(infer_("slice", {t({3}), int64_t{0}, int64_t{0}, int64_t{3}, kMax}), "float32[1]");
}

TEST_F(ExtremeRulesTest, UnsignedNumbersKeepTheirValue) {
  const Scalar beyond = Scalar::of_unsigned((uint64_t{1} << 63) + 5);
  EXPECT_THAT(infer_("arange", {Arg(beyond)}), HasSubstr("too long"));
  EXPECT_EQ(infer_("arange_from", {Arg(Scalar::of_unsigned((uint64_t{1} << 63) + 1)), Arg(beyond)}), "int64[4]");
}

TEST_F(ExtremeRulesTest, RangesOfEqualDoublesAreOrderedByTheirIntegers) {
  EXPECT_THAT(infer_("arange_from", {Arg(Scalar(kMin + 1)), Arg(Scalar(kMin)), Arg(Scalar(int64_t{1}))}),
              HasSubstr("inconsistent with step sign"));
  EXPECT_EQ(infer_("arange_from", {Arg(Scalar(kMin + 1)), Arg(Scalar(kMin)), Arg(Scalar(int64_t{-1}))}), "int64[1]");
}

TEST_F(ExtremeRulesTest, ListsOfViewsAreBounded) {
  const int64_t most = int64_t{1} << 18;
  EXPECT_THAT(infer_("unbind", {t({most + 1}), int64_t{0}}), HasSubstr("at most"));
  EXPECT_THAT(infer_("split", {t({kMax}, DType::kBool), int64_t{1}, int64_t{0}}), HasSubstr("at most"));
  EXPECT_EQ(infer_("split", {t({kMax}, DType::kBool), kMax - 1, int64_t{0}}),
            absl::StrCat("bool[", kMax - 1, "] bool[1]"));
  EXPECT_THAT(infer_("chunk", {t({0}), kMax, int64_t{0}}), HasSubstr("at most"));
  EXPECT_THAT(infer_("tensor_split", {t({3}), most + 1, int64_t{0}}), HasSubstr("at most"));
  EXPECT_EQ(infer_("chunk", {t({0}), int64_t{2}, int64_t{0}}), "float32[0] float32[0]");
  EXPECT_EQ(infer_("chunk", {t({5}), kMax, int64_t{0}}), "float32[1] float32[1] float32[1] float32[1] float32[1]");
}

TEST_F(ExtremeRulesTest, DimensionsAreCounted) {
  const Sizes ones(64, 1);
  EXPECT_THAT(infer_("unsqueeze", {infer_.tensor(ones), int64_t{0}}), HasSubstr("at most 64 dimensions"));
  EXPECT_THAT(infer_("reshape", {infer_.tensor(ones), Arg(SizesView(Sizes(65, 1)))}), HasSubstr("at most 64"));
  EXPECT_THAT(infer_("sum", {infer_.tensor(ones), n({-64})}), StartsWith("float32[1, 1"));
}

}  // namespace
}  // namespace tt
