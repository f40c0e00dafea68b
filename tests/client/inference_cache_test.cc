#include "client/session/inference_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/schema/custom_operator.h"
#include "engine/schema/layout.h"
#include "engine/schema/op_ids.h"

namespace tt::client {
namespace {

TensorMeta meta(Sizes sizes, DType dtype = DType::kFloat32) {
  TensorMeta result;
  result.dtype = dtype;
  result.strides = contiguous_strides(sizes);
  result.sizes = std::move(sizes);
  return result;
}

const Op& op(uint16_t id) { return *find_op(id); }

// The cached results of a call, which are stored first if `store`.
const Inference* lookup(InferenceCache* cache, const Op& op, Args args, bool grad, bool store = false) {
  const InferenceCache::Key key = InferenceCache::key_of(op, args, grad);
  EXPECT_TRUE(key.cacheable);
  if (store) {
    Inference inference;
    infer(op, args, grad, &inference);
    cache->store(key, op, args, grad, inference);
  }
  return cache->find(key, op, args, grad);
}

TEST(InferenceCache, FindsEqualCallsOnly) {
  auto cache = std::make_unique<InferenceCache>();
  const TensorMeta x = meta({2, 3}), y = meta({2, 3});
  const Op& add = op(op_id::kAdd);
  ASSERT_NE(lookup(cache.get(), add, {Arg(&x), Arg(&y), Arg(1)}, true, true), nullptr);
  EXPECT_NE(lookup(cache.get(), add, {Arg(&y), Arg(&x), Arg(1)}, true), nullptr);  // by value, not by address

  std::vector<TensorMeta> others(7, x);
  others[0] = meta({3, 2});
  others[1] = meta({6});
  others[2].dtype = DType::kFloat64;
  others[3].requires_grad = true;
  others[4].strides = {1, 2};
  others[5].is_number = true;
  others[6].device = Device{DeviceType::kMeta, 0};
  for (const TensorMeta& other : others) {
    EXPECT_EQ(lookup(cache.get(), add, {Arg(&other), Arg(&y), Arg(1)}, true), nullptr) << describe(other);
    EXPECT_EQ(lookup(cache.get(), add, {Arg(&x), Arg(&other), Arg(1)}, true), nullptr) << describe(other);
  }
  for (const Arg& alpha : {Arg(2), Arg(1.0), Arg(true), Arg()})
    EXPECT_EQ(lookup(cache.get(), add, {Arg(&x), Arg(&y), alpha}, true), nullptr);
  Arg is_unsigned(1);
  is_unsigned.size = 1;
  EXPECT_EQ(lookup(cache.get(), add, {Arg(&x), Arg(&y), is_unsigned}, true), nullptr);
  EXPECT_EQ(lookup(cache.get(), add, {Arg(&x), Arg(&y), Arg(1)}, false), nullptr);
  EXPECT_EQ(lookup(cache.get(), op(op_id::kSub), {Arg(&x), Arg(&y), Arg(1)}, true), nullptr);
}

TEST(InferenceCache, ComparesListsOfIntegers) {
  auto cache = std::make_unique<InferenceCache>();
  const TensorMeta x = meta({2, 3, 4});
  const Op& sum = op(op_id::kSum);
  const auto args = [&](const std::vector<int64_t>& dims) {
    std::vector<Arg> list{Arg(&x), Arg(absl::MakeConstSpan(dims))};
    while (list.size() < sum.params.size()) list.push_back(sum.params[list.size()].default_value);
    return list;
  };
  std::vector<int64_t> dims{0, 1};
  ASSERT_NE(lookup(cache.get(), sum, args(dims), true, true), nullptr);
  dims = {0, 2};  // the cache has its own copy
  EXPECT_EQ(lookup(cache.get(), sum, args(dims), true), nullptr);
  EXPECT_EQ(lookup(cache.get(), sum, args({0}), true), nullptr);
  const Inference* const found = lookup(cache.get(), sum, args({0, 1}), true);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->outputs[0].sizes, Sizes({4}));
}

TEST(InferenceCache, RefusesCallsThatDependOnMoreThanTheirMetadata) {
  const TensorMeta x = meta({2, 3}), deep = meta({1, 1, 1, 1, 1, 2});
  const int64_t sizes[] = {6};
  const TensorMeta* const list[] = {&x};
  const auto cacheable = [](const Op& op, Args args) { return InferenceCache::key_of(op, args, true).cacheable; };
  EXPECT_FALSE(cacheable(op(op_id::kReshape), {Arg(&x), Arg(absl::MakeConstSpan(sizes))}));
  EXPECT_FALSE(cacheable(op(op_id::kNonzero), {Arg(&x)}));
  EXPECT_FALSE(cacheable(op(op_id::kCat), {Arg(absl::MakeConstSpan(list)), Arg(0)}));
  EXPECT_FALSE(cacheable(op(op_id::kAdd), {Arg(&deep), Arg(&x), Arg(1)}));
  EXPECT_FALSE(cacheable(op(op_id::kAdd), {Arg(&x), Arg(&x)}));  // check_args() refuses it
  EXPECT_FALSE(cacheable(op(op_id::kAdd), {Arg(&x), Arg(&x), Arg(std::complex<double>(1, 2))}));
  Op custom = op(op_id::kAdd);
  custom.id = kFirstCustomOp;
  EXPECT_FALSE(cacheable(custom, {Arg(&x), Arg(&x), Arg(1)}));
}

// Calls of few operators with colliding entries never get the results of others.
TEST(InferenceCache, AgreesWithTheRules) {
  auto cache = std::make_unique<InferenceCache>();
  std::vector<TensorMeta> metas;
  metas.reserve(24);
  for (int64_t i = 0; i < 24; ++i) metas.push_back(meta({1 + i % 3, 1 + i / 3 % 2, 1 + i / 6}));
  size_t hits = 0;
  for (int round = 0; round < 4; ++round) {
    for (const uint16_t id : {op_id::kAdd, op_id::kSub}) {
      for (const TensorMeta& a : metas) {
        for (const TensorMeta& b : {metas[0], a}) {
          const Arg args[] = {Arg(&a), Arg(&b), Arg(1)};
          Inference want;
          infer(op(id), args, true, &want);
          const Inference* const known = lookup(cache.get(), op(id), args, true);
          hits += known != nullptr;
          const Inference* const got = known ? known : lookup(cache.get(), op(id), args, true, true);
          ASSERT_EQ(got->outputs[0].sizes, want.outputs[0].sizes);
        }
      }
    }
  }
  EXPECT_GT(hits, 0U);
}

TEST(InferenceCache, IsOnePerThreadUntilTheThreadEnds) {
  struct Late {
    const InferenceCache** at;
    ~Late() { *at = InferenceCache::of_thread(); }
  };
  const InferenceCache* const mine = InferenceCache::of_thread();
  const InferenceCache* other = nullptr;
  const InferenceCache* late = mine;
  std::thread([&] {
    static thread_local Late last{&late};  // its destructor follows that of the cache, which is made later
    (void)last;
    other = InferenceCache::of_thread();
  }).join();
  EXPECT_NE(mine, nullptr);
  EXPECT_NE(other, nullptr);
  EXPECT_NE(other, mine);
  EXPECT_EQ(late, nullptr);
  EXPECT_EQ(InferenceCache::of_thread(), mine);
}

}  // namespace
}  // namespace tt::client
