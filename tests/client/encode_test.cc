#include "client/session/encode.h"

#include <gtest/gtest.h>

#include "client/session/session.h"

namespace tt::client {
namespace {

// An operator with a parameter of each kind; only the fields that encode() reads are set.
const Param kParams[] = {
    {.name = "t", .type = ParamType::kTensor, .optional = true, .has_default = true},
    {.name = "flag", .type = ParamType::kBool, .has_default = true, .default_value = Arg(false)},
    {.name = "n", .type = ParamType::kInt, .has_default = true, .default_value = Arg(int64_t{-1})},
    {.name = "x", .type = ParamType::kFloat, .has_default = true, .default_value = Arg(0.5)},
    {.name = "s", .type = ParamType::kString, .has_default = true, .default_value = Arg(std::string_view("mean"))},
};
const Op kOp{.id = 1, .name = "all", .params = kParams, .num_outputs = 1};

TEST(Encode, OmitsTrailingDefaults) {
  const Arg args[] = {Arg(), Arg(true), Arg(int64_t{-1}), Arg(0.5), Arg(std::string_view("mean"))};
  v1::Instruction instruction;
  encode_args(kOp, args, &instruction);
  ASSERT_EQ(instruction.args_size(), 2);
  EXPECT_TRUE(instruction.args(0).none());
  EXPECT_TRUE(instruction.args(1).boolean());
}

TEST(Encode, KeepsDefaultsBeforeGivenArguments) {
  const Arg args[] = {Arg(), Arg(false), Arg(int64_t{-1}), Arg(0.5), Arg(std::string_view("sum"))};
  v1::Instruction instruction;
  encode_args(kOp, args, &instruction);
  ASSERT_EQ(instruction.args_size(), 5);
  EXPECT_EQ(instruction.args(2).integer(), -1);
  EXPECT_EQ(instruction.args(3).real(), 0.5);
  EXPECT_EQ(instruction.args(4).characters(), "sum");
}

TEST(Encode, DistinguishesKindsOfDefaults) {
  const Arg args[] = {Arg(), Arg(false), Arg(-1.0), Arg(0.5), Arg(std::string_view("mean"))};
  v1::Instruction instruction;
  encode_args(kOp, args, &instruction);
  ASSERT_EQ(instruction.args_size(), 3);  // -1.0 is distinct from the default -1
  EXPECT_EQ(instruction.args(2).real(), -1.0);
}

TEST(Encode, Lists) {
  const int64_t ints[] = {3, -4};
  const double reals[] = {0.25};
  Handle named(TensorMeta(), nullptr, 0);
  const TensorMeta* tensors[] = {&named, nullptr};
  const Arg args[] = {absl::Span<const int64_t>(ints), absl::Span<const double>(reals),
                      absl::Span<const TensorMeta* const>(tensors)};
  const Param params[] = {kParams[0], kParams[0], kParams[0]};
  const Op op{.id = 1, .name = "lists", .params = params, .num_outputs = 1};
  v1::Instruction instruction;
  encode_args(op, args, &instruction);
  EXPECT_EQ(instruction.args(0).integers().values(1), -4);
  EXPECT_EQ(instruction.args(1).reals().values(0), 0.25);
  EXPECT_EQ(instruction.args(2).handles().values_size(), 2);
}

TEST(Encode, EstimateCoversInlineBytes) {
  std::string text(100'000, 'x');
  const Arg args[] = {std::string_view(text)};
  const Param params[] = {kParams[0]};
  const Op op{.id = 1, .name = "text", .params = params, .num_outputs = 1};
  const FrameSize size = encoded_size(op, args, text.size());
  EXPECT_GE(size.bytes, text.size());
  EXPECT_GE(size.memory, size.bytes);
  EXPECT_THROW(encoded_size(op, args, text.size() - 1), Error);
}

}  // namespace
}  // namespace tt::client
