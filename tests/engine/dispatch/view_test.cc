// Views through the dispatcher: aliasing, copies, and refused calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "kernels/cpu/cpu.h"

namespace tt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Ints = std::vector<int64_t>;

struct ViewTest : testing::Test {
  static void SetUpTestSuite() { cpu::register_backend(Dispatcher::instance()); }

  static Tensor counting(SizesView sizes) {
    Tensor t = empty(sizes, DType::kFloat32, {});
    std::iota(t.data_as<float>(), t.data_as<float>() + t.numel(), 1.0f);
    return t;
  }
  static bool share(const Tensor& a, const Tensor& b) { return a->storage == b->storage; }

  Context context;
  ContextScope scope{&context};
};

TEST_F(ViewTest, ViewSharesStorageVersionAndBase) {
  Tensor x = counting({2, 3});
  Tensor y = ops::transpose(x, 0, 1), z = ops::select(y, 0, 2);
  EXPECT_TRUE(share(x, y) && share(x, z));
  EXPECT_EQ(y->base.get(), x.get());
  EXPECT_EQ(z->base.get(), x.get()) << "a base must not be a view";
  EXPECT_EQ(*z.data_as<float>(), 3);
  const Arg args[] = {z.get(), Arg(10.0), int64_t{1}};
  ops::call(find_op("add")->id, args, {&z, 1});
  EXPECT_THAT(std::vector<float>(x.data_as<float>(), x.data_as<float>() + 6), ElementsAre(1, 2, 13, 4, 5, 16));
  EXPECT_EQ(x.version(), z.version());
  EXPECT_GT(x.version(), 0u);
}

TEST_F(ViewTest, ReshapeCopiesOnlyIfNecessary) {
  Tensor x = counting({2, 3});
  EXPECT_TRUE(share(x, ops::reshape(x, Ints{3, 2})));
  Tensor copy = ops::reshape(ops::transpose(x, 0, 1), Ints{6});
  EXPECT_FALSE(share(x, copy));
  EXPECT_FALSE(copy->base);
  EXPECT_THAT(std::vector<float>(copy.data_as<float>(), copy.data_as<float>() + 6), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(ViewTest, ListsOfViewsAllAlias) {
  Tensor x = counting({5});
  Tensors parts = ops::split(x, 2, 0);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2].sizes(), Sizes{1});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(share(x, parts[i]));
    EXPECT_EQ(*parts[i].data_as<float>(), 2.0f * static_cast<float>(i) + 1);
  }
}

TEST_F(ViewTest, DetachHasNoBase) {
  Tensor x = counting({2});
  x->requires_grad = true;
  Tensor y = ops::detach(x);
  EXPECT_TRUE(share(x, y));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_FALSE(y->base);
}

TEST_F(ViewTest, RejectsStrideBeyondStorage) {
  Tensor x = counting({4});
  try {
    ops::as_strided(x, Ints{3}, Ints{2}, 0);
    FAIL() << "out-of-bounds strides were accepted";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(),
                HasSubstr("[as_strided] a view with sizes [3], strides [2] and offset 0 exceeds its storage"));
  }
}

TEST_F(ViewTest, MetaViewsHaveGeometryOnly) {
  Tensor x = empty({1 << 20, 1 << 20}, DType::kFloat32, {DeviceType::kMeta});
  Tensor y = ops::transpose(x, 0, 1);
  EXPECT_TRUE(share(x, y));
  Tensor z = ops::reshape(y, Ints{-1});
  EXPECT_EQ(z.numel(), int64_t{1} << 40);
  EXPECT_EQ(z->storage->data(), nullptr);
}

TEST_F(ViewTest, ViewCanBeWrittenToOut) {
  Tensor x = counting({2, 2}), out = empty({2, 2}, DType::kFloat64, {});
  const Arg args[] = {x.get(), int64_t{0}, int64_t{1}};
  ops::call(find_op("transpose")->id, args, {&out, 1});
  EXPECT_THAT(std::vector<double>(out.data_as<double>(), out.data_as<double>() + 4), ElementsAre(1, 3, 2, 4));
}

}  // namespace
}  // namespace tt
