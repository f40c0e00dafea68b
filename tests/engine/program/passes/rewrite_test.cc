// Expressions that become one operator, by the text of Programs before and after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/device/cancellation.h"
#include "engine/program/passes/pattern.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/rewrite.h"
#include "engine/schema/op.h"
#include "engine/schema/program_types.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using ::testing::HasSubstr;
using testing::InputMetas;
using testing::slot;
using testing::slots;

// Queries, keys and values of 2 x 3 heads, and a mask: names 1 to 4.
std::string rewritten_attention(Program program, DType mask = DType::kFloat32, const Sizes& key = {2, 3, 5, 8}) {
  std::vector<TensorMeta> metas(4);
  const Sizes sizes[] = {{2, 3, 4, 8}, key, {2, 3, 5, 6}, {4, 5}};
  std::vector<const TensorMeta*> pointers;
  for (size_t i = 0; i < metas.size(); ++i) {
    metas[i].sizes = sizes[i];
    metas[i].strides = contiguous_strides(sizes[i]);
    pointers.push_back(&metas[i]);
  }
  metas[3].dtype = mask;
  rewrite(&program, ProgramTypes(program, pointers, /*grad_enabled=*/false));
  remove_unused(&program);
  return to_string(program);
}

Arg last_but_one() { return Arg(int64_t{-2}); }
Arg last_dim() { return Arg(int64_t{-1}); }

TEST(Rewrite, AttentionOfNanoGpt) {
  Program program;
  add(&program, "transpose", {slot(2), last_but_one(), last_dim()}, {5});
  add(&program, "matmul", {slot(1), slot(5)}, {6});
  add(&program, "mul", {slot(6), Arg(0.25)}, {7});
  add(&program, "eq", {slot(4), Arg(int64_t{0})}, {8});
  add(&program, "masked_fill", {slot(7), slot(8), Arg(-HUGE_VAL)}, {9});
  add(&program, "softmax", {slot(9), last_dim()}, {10});
  add(&program, "matmul", {slot(10), slot(3)}, {11});
  program.set_outputs({11});
  EXPECT_EQ(rewritten_attention(program),
            "%8 = eq(%4, other=0)\n%11 = softmax_attention(%1, %2, %3, %8, scale=0.25)  # drops %4\nread %11\n");
}

TEST(Rewrite, AttentionOfHuggingFace) {
  Program program;
  add(&program, "transpose", {slot(2), Arg(int64_t{2}), Arg(int64_t{3})}, {5});
  add(&program, "matmul", {slot(1), slot(5)}, {6});
  add(&program, "mul", {slot(6), Arg(0.25)}, {7});
  add(&program, "add", {slot(7), slot(4)}, {8});
  add(&program, "softmax", {slot(8), last_dim(), Arg(static_cast<int64_t>(DType::kFloat32))}, {9});
  add(&program, "matmul", {slot(9), slot(3)}, {10});
  program.set_outputs({10});
  EXPECT_EQ(rewritten_attention(program), "%10 = softmax_attention(%1, %2, %3, %4, scale=0.25)\nread %10\n");
}

TEST(Rewrite, AttentionWithOtherScalesAndTransposes) {
  const std::vector<int64_t> swap = {0, 1, 3, 2}, other = {0, 2, 3, 1};
  const auto ending = [](Program program, Slot scores) {
    add(&program, "softmax", {slot(scores), last_dim()}, {20});
    add(&program, "matmul", {slot(20), slot(3)}, {21});
    program.set_outputs({21});
    return program;
  };
  Program unscaled, scaled_query, both, transposed, permuted;
  add(&unscaled, "permute", {slot(2), Arg(absl::Span<const int64_t>(swap))}, {5});
  add(&unscaled, "matmul", {slot(1), slot(5)}, {6});
  EXPECT_EQ(rewritten_attention(ending(unscaled, 6)),
            "%21 = softmax_attention(%1, %2, %3, attn_mask=None, scale=1)\nread %21\n");
  add(&scaled_query, "div", {slot(1), Arg(4.0)}, {5});
  add(&scaled_query, "transpose", {slot(2), last_dim(), last_but_one()}, {6});
  add(&scaled_query, "matmul", {slot(5), slot(6)}, {7});
  EXPECT_THAT(rewritten_attention(ending(scaled_query, 7)), HasSubstr("attention(%1, %2, %3"));
  add(&both, "mul", {slot(1), Arg(0.5)}, {5});
  add(&both, "mul", {slot(2), Arg(0.5)}, {6});
  add(&both, "transpose", {slot(6), last_but_one(), last_dim()}, {7});
  add(&both, "matmul", {slot(5), slot(7)}, {8});
  EXPECT_THAT(rewritten_attention(ending(both, 8)), HasSubstr("attn_mask=None, scale=0.25)"));
  add(&transposed, "matmul", {slot(1), slot(2)}, {5});
  EXPECT_EQ(rewritten_attention(ending(transposed, 5), DType::kFloat32, {2, 3, 8, 5}),
            "%22 = transpose(%2, dim0=-2, dim1=-1)\n"
            "%21 = softmax_attention(%1, %22, %3, attn_mask=None, scale=1)  # drops %2\nread %21\n");
  add(&permuted, "permute", {slot(2), Arg(absl::Span<const int64_t>(other))}, {5});  // from (batch, rows, heads, depth)
  add(&permuted, "matmul", {slot(1), slot(5)}, {6});
  EXPECT_EQ(rewritten_attention(ending(permuted, 6), DType::kFloat32, {2, 5, 3, 8}),
            "%5 = permute(%2, dims=[0, 2, 3, 1])\n%22 = transpose(%5, dim0=-2, dim1=-1)  # drops %2\n"
            "%21 = softmax_attention(%1, %22, %3, attn_mask=None, scale=1)  # drops %5\nread %21\n");
}

TEST(Rewrite, AttentionWhereSelectsAndFactorsThatOthersRead) {
  Program program, read;
  add(&program, "transpose", {slot(2), last_but_one(), last_dim()}, {5});
  add(&program, "matmul", {slot(1), slot(5)}, {6});
  add(&program, "where", {slot(4), slot(6), Arg(-HUGE_VAL)}, {7});
  add(&program, "softmax", {slot(7), last_dim()}, {8});
  add(&program, "matmul", {slot(8), slot(3)}, {9});
  program.set_outputs({9});
  EXPECT_EQ(rewritten_attention(program, DType::kBool),
            "%10 = logical_not(%4)\n%9 = softmax_attention(%1, %2, %3, %10, scale=1)  # drops %4\nread %9\n");
  add(&read, "mul", {slot(1), Arg(0.25)}, {5});
  add(&read, "transpose", {slot(2), last_but_one(), last_dim()}, {6});
  add(&read, "matmul", {slot(5), slot(6)}, {7});
  add(&read, "softmax", {slot(7), last_dim()}, {8});
  add(&read, "matmul", {slot(8), slot(3)}, {9});
  read.set_outputs({5, 9});
  EXPECT_THAT(rewritten_attention(read), HasSubstr("attention(%5, %2, %3"));
}

TEST(Rewrite, CrossEntropyWithItsArguments) {
  Program program;
  add(&program, "log_softmax", {slot(1), Arg(int64_t{1})}, {4});
  add(&program, "nll_loss", {slot(4), slot(2), slot(3), Arg(int64_t{1}), Arg(std::string_view("none"))}, {5});
  program.set_outputs({5});
  std::vector<TensorMeta> metas(3);
  metas[0].sizes = {4, 6};
  metas[0].strides = {6, 1};
  metas[1].sizes = {4};
  metas[1].strides = {1};
  metas[1].dtype = DType::kInt64;
  metas[2].sizes = {6};
  metas[2].strides = {1};
  const TensorMeta* const pointers[] = {&metas[0], &metas[1], &metas[2]};
  rewrite(&program, ProgramTypes(program, pointers, /*grad_enabled=*/false));
  EXPECT_EQ(to_string(program), "%5 = cross_entropy(%1, %2, %3, ignore_index=1, reduction='none')\nread %5\n");
}

// Rules of losses apply to the largest expressions first, and read what they add.
TEST(Rewrite, CrossEntropyOfIndexedRows) {
  constexpr Slot kIndices[] = {3, 2};
  const auto rewritten = [&](int64_t rows, bool reads_losses) {
    Program program;
    add(&program, "arange", {Arg(rows)}, {3});
    add(&program, "log_softmax", {slot(1), Arg(int64_t{-1})}, {4});
    add(&program, "index", {slot(4), slots(kIndices)}, {5});
    add(&program, "neg", {slot(5)}, {6});
    add(&program, "mean", {slot(6)}, {7});
    program.set_outputs(reads_losses ? std::vector<Slot>{6, 7} : std::vector<Slot>{7});
    std::vector<TensorMeta> metas(2);
    metas[0].sizes = {4, 6};
    metas[0].strides = {6, 1};
    metas[1].sizes = {4};
    metas[1].strides = {1};
    metas[1].dtype = DType::kInt64;
    const TensorMeta* const pointers[] = {&metas[0], &metas[1]};
    rewrite(&program, ProgramTypes(program, pointers, /*grad_enabled=*/false));
    return to_string(program);
  };
  const std::string text = rewritten(4, false), losses = rewritten(4, true);
  EXPECT_THAT(text, HasSubstr("index("));
  EXPECT_THAT(text, HasSubstr("%7 = cross_entropy(%1, %"));
  EXPECT_THAT(text, HasSubstr("reduction='mean'"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("log_softmax")));
  EXPECT_THAT(losses, HasSubstr("%6 = cross_entropy(%1, %"));
  EXPECT_THAT(losses, HasSubstr("%7 = mean(%6)"));
  EXPECT_THAT(rewritten(1, false), HasSubstr("log_softmax")) << "classes of one row";
}

// %1 * sigmoid(%1), of which the same is computed, and so on.
Program silus(Slot count) {
  Program program;
  for (Slot k = 0; k < count; ++k) {
    add(&program, "sigmoid", {slot(2 * k + 1)}, {2 * k + 2});
    add(&program, "mul", {slot(2 * k + 1), slot(2 * k + 2)}, {2 * k + 3});
  }
  program.set_outputs({2 * count + 1});
  return program;
}

// With work for the whole Program at every match, this test would run for minutes.
TEST(Rewrite, ThousandsOfMatches) {
  constexpr Slot kCount = 30'000;
  Program program = silus(kCount);
  EXPECT_EQ(rewrite(&program, InputMetas(Sizes{4}).types(program)), kCount);
  ASSERT_EQ(program.instructions().size(), kCount);
  for (Slot k = 0; k < kCount; ++k) {
    const Instruction& call = program.instructions()[k];
    ASSERT_EQ(call.op, find_op("silu"));
    ASSERT_EQ(call.args[0].slot, 2 * k + 1);
    ASSERT_EQ(call.results[0], 2 * k + 3);
  }
}

TEST(Rewrite, ThousandsOfMatchesThatReadTheSameValue) {
  constexpr Slot kCount = 20'000;
  Program program;
  for (Slot k = 0; k < kCount; ++k) {
    add(&program, "sigmoid", {slot(1)}, {3 * k + 2});
    add(&program, "mul", {slot(3 * k + 2), slot(1)}, {3 * k + 3});
    add(&program, "add", {slot(k == 0 ? 1 : 3 * k + 1), slot(3 * k + 3)}, {3 * k + 4});
  }
  program.set_outputs({3 * kCount + 1});
  EXPECT_EQ(rewrite(&program, InputMetas(Sizes{4}).types(program)), kCount);
  EXPECT_EQ(program.instructions().size(), 2 * kCount);
}

// Each match adds a call with a new name.
TEST(Rewrite, ThousandsOfAttentions) {
  constexpr Slot kCount = 4000;
  Program program;
  for (Slot k = 0; k < kCount; ++k) {
    const Slot first = 4 * k + 2;
    add(&program, "matmul", {slot(k == 0 ? 1 : first - 1), slot(1)}, {first});
    add(&program, "mul", {slot(first), Arg(0.5)}, {first + 1});
    add(&program, "softmax", {slot(first + 1), Arg(int64_t{-1})}, {first + 2});
    add(&program, "matmul", {slot(first + 2), slot(1)}, {first + 3});
  }
  program.set_outputs({4 * kCount + 1});
  EXPECT_EQ(rewrite(&program, InputMetas(Sizes{2, 4, 4}).types(program)), kCount);
  ASSERT_EQ(program.instructions().size(), 2 * kCount);
  for (Slot k = 0; k < kCount; ++k) {
    const Instruction &keys = program.instructions()[2 * k], &call = program.instructions()[2 * k + 1];
    ASSERT_EQ(keys.op, find_op("transpose"));
    ASSERT_EQ(keys.results[0], 4 * kCount + 2 + k);
    ASSERT_EQ(call.op, find_op("softmax_attention"));
    ASSERT_EQ(call.args[1].slot, keys.results[0]);
    ASSERT_EQ(call.results[0], 4 * k + 5);
  }
}

// The mask is the factor of the scores, which stays although the match contains it.
TEST(Rewrite, KeepsAPartThatTheOperatorReads) {
  Program program;
  add(&program, "mul", {slot(1), Arg(0.5)}, {2});
  add(&program, "matmul", {slot(2), slot(1)}, {3});
  add(&program, "add", {slot(3), slot(2)}, {4});
  add(&program, "softmax", {slot(4), Arg(int64_t{-1})}, {5});
  add(&program, "matmul", {slot(5), slot(1)}, {6});
  program.set_outputs({6});
  EXPECT_EQ(rewrite(&program, InputMetas(Sizes{2, 4, 4}).types(program)), 1u);
  EXPECT_EQ(to_string(program),
            "%2 = mul(%1, other=0.5)\n%7 = transpose(%1, dim0=-2, dim1=-1)\n"
            "%6 = softmax_attention(%1, %7, %1, %2, scale=0.5)\nread %6\n");
}

// The product is a factor of the queries and of the keys: two calls of the pattern. `also` reads it, too.
TEST(Rewrite, OneInstructionForTwoCallsOfAPattern) {
  const auto rewritten = [](bool also) {
    Program program;
    add(&program, "mul", {slot(1), Arg(0.5)}, {2});
    add(&program, "transpose", {slot(2), Arg(int64_t{-2}), Arg(int64_t{-1})}, {3});
    add(&program, "matmul", {slot(2), slot(3)}, {4});
    add(&program, "softmax", {slot(4), Arg(int64_t{-1})}, {5});
    add(&program, "matmul", {slot(5), slot(1)}, {6});
    if (also) add(&program, "neg", {slot(2)}, {7});
    add(&program, "add", {slot(6), slot(also ? 7 : 1)}, {8});
    program.set_outputs({8});
    EXPECT_EQ(rewrite(&program, InputMetas(Sizes{2, 4, 4}).types(program)), 1u);
    return to_string(program);
  };
  EXPECT_EQ(rewritten(false),
            "%6 = softmax_attention(%1, %1, %1, attn_mask=None, scale=0.25)\n%8 = add(%6, %1)\nread %8\n");
  EXPECT_THAT(rewritten(true), HasSubstr("%6 = softmax_attention(%2, %2, %1, attn_mask=None, scale=1)\n"));
}

TEST(Rewrite, KeepsLogarithmsOfSoftmax) {
  Program program;
  add(&program, "softmax", {slot(1), Arg(int64_t{1})}, {3});
  add(&program, "log", {slot(3)}, {4});
  add(&program, "nll_loss", {slot(4), slot(2)}, {5});
  program.set_outputs({5});
  std::vector<TensorMeta> metas(2);
  metas[0].sizes = {4, 6};
  metas[0].strides = {6, 1};
  metas[1].sizes = {4};
  metas[1].strides = {1};
  metas[1].dtype = DType::kInt64;
  const TensorMeta* const pointers[] = {&metas[0], &metas[1]};
  EXPECT_EQ(rewrite(&program, ProgramTypes(program, pointers, /*grad_enabled=*/false)), 0u);
}

TEST(Rewrite, StopsWhenCancelled) {
  Cancellation cancellation;
  const CancellationScope scope(&cancellation);
  Program program = silus(4);
  const ProgramTypes types = InputMetas(Sizes{4}).types(program);
  cancellation.request(CancelReason::kTimeLimit);
  EXPECT_THROW(rewrite(&program, types), Cancelled);
  cancellation.reset();
  EXPECT_EQ(rewrite(&program, types), 4u);
}

}  // namespace
}  // namespace tt
