// Autocast regions of C++ clients: the dtypes of results, and the instructions that a session sends.
#include "client/session/autocast.h"

#include "client/session/operand.h"
#include "engine/schema/autocast_result.h"
#include "tests/client/fixture.h"

namespace tt::client::testing {
namespace {

using ::testing::ElementsAre;

struct AutocastTest : FakeSession {
  AutocastTest() { connect(); }

  DType multiply(const Tensor& a, const Tensor& b, absl::Span<const Tensor> into = {}) {
    const Arg args[] = {a.get(), b.get()};
    return call_op(*session, op_id::kMatmul, args, into)[0]->dtype;
  }
  // The operators executed after the first `count` instructions.
  std::vector<uint32_t> executed_after(size_t count) {
    session->synchronize();
    std::vector<uint32_t> ops;
    for (size_t i = count; i < engine->executed.size(); ++i) ops.push_back(engine->executed[i].op());
    return ops;
  }
};

constexpr uint32_t kSet = op_id::kSetAutocast, kMatmul = op_id::kMatmul, kAdd = op_id::kAdd;

TEST_F(AutocastTest, SendsSettingsOncePerRegion) {
  Tensor a = make({2, 2});
  {
    Autocast region(DeviceType::kCPU);
    EXPECT_EQ(multiply(a, a), DType::kBFloat16);
    EXPECT_EQ(multiply(a, a), DType::kBFloat16);
    add(a, a);
  }
  EXPECT_EQ(multiply(a, a), DType::kFloat32);
  // The engine casts. The end of the region turns autocast off before the next call.
  EXPECT_THAT(executed_after(1), ElementsAre(kSet, kMatmul, kMatmul, kAdd, kSet, kMatmul));
}

TEST_F(AutocastTest, SendsNothingWithoutAListedOperator) {
  Tensor a = make({2, 2});
  {
    Autocast region(DeviceType::kCPU);
    add(a, a);
    Tensor into[] = {make({2, 2})};
    EXPECT_EQ(multiply(a, a, into), DType::kFloat32);  // writes to an existing tensor
  }
  EXPECT_THAT(executed_after(1), ElementsAre(kAdd, kAdd, kMatmul));
}

TEST_F(AutocastTest, NestedRegions) {
  Tensor a = make({2, 2});
  {
    Autocast outer(DeviceType::kCPU, DType::kFloat16);
    EXPECT_EQ(multiply(a, a), DType::kFloat16);
    {
      Autocast off(DeviceType::kCPU, std::nullopt, false);
      EXPECT_EQ(multiply(a, a), DType::kFloat32);
    }
    EXPECT_EQ(multiply(a, a), DType::kFloat16);
    Autocast of_gpus(DeviceType::kCUDA);
    EXPECT_EQ(multiply(a, a), DType::kFloat16);
  }
  EXPECT_FALSE(autocast_settings().state().enabled());
  EXPECT_EQ(autocast_settings().dtype(DeviceType::kCPU), DType::kBFloat16);
}

TEST_F(AutocastTest, ClearsKeptCasts) {
  Tensor a = make({2, 2});
  clear_autocast_cache();  // nothing is kept
  {
    Autocast region(DeviceType::kCPU);
    multiply(a, a);
    clear_autocast_cache();
  }
  EXPECT_THAT(executed_after(1), ElementsAre(kSet, kMatmul, op_id::kClearAutocastCache, kSet));
}

TEST_F(AutocastTest, RejectsOtherDtypesAndDevices) {
  EXPECT_THROW(Autocast(DeviceType::kCPU, DType::kFloat32), Error);
  EXPECT_THROW(Autocast{DeviceType::kMeta}, Error);
}

TensorMeta meta_of(DType dtype, Device device, Sizes sizes = {2}) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.device = device;
  meta.sizes = sizes;
  meta.strides = contiguous_strides(sizes);
  return meta;
}

TEST(AutocastRules, OneRowPerPolicy) {
  const Device gpu{DeviceType::kCUDA};
  const AutocastState state{.cuda = DType::kFloat16};
  const TensorMeta wide = meta_of(DType::kFloat32, gpu), narrow = meta_of(DType::kFloat16, gpu),
                   wider = meta_of(DType::kFloat64, gpu), other = meta_of(DType::kBFloat16, gpu),
                   there = meta_of(DType::kFloat32, Device{});
  const auto dtype = [&](std::string_view name, const TensorMeta& a, const TensorMeta& b) {
    const Arg args[] = {&a, &b};
    return autocast_rule(op(name), absl::MakeConstSpan(args), state).dtype;
  };
  EXPECT_EQ(dtype("matmul", wide, wide), DType::kFloat16);
  EXPECT_EQ(dtype("mse_loss", narrow, narrow), DType::kFloat32);
  EXPECT_EQ(dtype("dot", narrow, narrow), DType::kFloat16);
  EXPECT_EQ(dtype("dot", narrow, wide), DType::kFloat32);
  EXPECT_EQ(dtype("matmul", there, there), std::nullopt);
  EXPECT_EQ(dtype("add", wide, wide), std::nullopt);
  EXPECT_THROW(dtype("dot", narrow, other), Error);
  EXPECT_THROW(dtype("binary_cross_entropy", wide, wide), Error);
  const Arg args[] = {&wider, &wider};
  const AutocastRule rule = autocast_rule(op("matmul"), absl::MakeConstSpan(args), state);
  EXPECT_FALSE(rule.casts(wider));
  const Arg rows[] = {&wide, int64_t{1}, Arg(), Arg()};
  EXPECT_EQ(autocast_result(op("cov"), rows, state, DType::kFloat32), DType::kFloat16);
  EXPECT_EQ(autocast_result(op("cov"), rows, state, DType::kFloat64), std::nullopt);
  EXPECT_EQ(autocast_result(op("cov"), rows, state, DType::kComplex64), std::nullopt);
  EXPECT_EQ(autocast_result(op("matmul"), args, state, DType::kFloat32), std::nullopt);
  const Arg softmax[] = {&narrow, int64_t{0}, Arg()};
  EXPECT_EQ(autocast_rule(op("softmax"), softmax, state).float32_param, 2);
  const Arg typed[] = {&narrow, int64_t{0}, DType::kFloat64};
  EXPECT_FALSE(autocast_rule(op("softmax"), typed, state).changes());
}

}  // namespace
}  // namespace tt::client::testing
