// Arithmetic and views that change nothing, by the text of Programs before and after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/device/cancellation.h"
#include "engine/program/passes/remove_identities.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/schema/error.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using ::testing::HasSubstr;
using testing::InputMetas;
using testing::slot;

TEST(RemoveIdentities, RemovesProductsWithOne) {
  Program program;
  add(&program, "mul", {slot(1), Arg(1.0)}, {2});
  add(&program, "mul", {Arg(int64_t{1}), slot(2)}, {3});
  add(&program, "exp", {slot(3)}, {4});
  add(&program, "mul", {slot(4), Arg(2.0)}, {5});
  add(&program, "mul", {slot(5), Arg(1.0)}, {6});  // an output of its own
  program.set_outputs({6});
  remove_identities(&program, InputMetas(Sizes{4}).types(program));
  EXPECT_EQ(to_string(program), "%4 = exp(%1)\n%5 = mul(%4, other=2)\n%6 = mul(%5, other=1)\nread %6\n");
}

// The Program without the identities that its output depends on.
std::string without_identities(Program program, const Sizes& sizes = {4, 4}) {
  remove_identities(&program, InputMetas(sizes, sizes).types(program));
  remove_unused(&program);
  return to_string(program);
}

TEST(RemoveIdentities, RemovesArithmeticThatKeepsTheBits) {
  Program program;
  add(&program, "div", {slot(1), Arg(1.0)}, {3});
  add(&program, "sub", {slot(3), Arg(0.0)}, {4});
  add(&program, "add", {slot(4), Arg(-0.0)}, {5});
  add(&program, "neg", {slot(5)}, {6});
  add(&program, "neg", {slot(6)}, {7});
  add(&program, "relu", {slot(7)}, {8});
  add(&program, "relu", {slot(8)}, {9});
  add(&program, "maximum", {slot(9), slot(9)}, {10});
  add(&program, "clone", {slot(10)}, {11});
  add(&program, "to_dtype", {slot(11), Arg(static_cast<int64_t>(DType::kFloat32))}, {12});
  add(&program, "dropout", {slot(12), Arg(0.5), Arg(false)}, {13});
  add(&program, "exp", {slot(13)}, {14});
  program.set_outputs({14});
  EXPECT_EQ(without_identities(program), "%8 = relu(%1)\n%14 = exp(%8)  # drops %1\nread %14\n");
}

TEST(RemoveIdentities, KeepsArithmeticThatMayChangeBits) {
  const std::vector<std::vector<Arg>> sums = {{slot(1), Arg(0.0)},  // makes 0.0 of -0.0
                                              {slot(1), Arg(int64_t{0})},
                                              {slot(1), Arg(-0.0), Arg(-1.0)}};
  for (const std::vector<Arg>& args : sums) {
    Program program;
    add(&program, "add", args, {3});
    add(&program, "exp", {slot(3)}, {4});
    program.set_outputs({4});
    EXPECT_THAT(without_identities(program), HasSubstr("add(%1"));
  }
  Program differences, dtypes, quotients;
  add(&differences, "sub", {slot(1), Arg(-0.0)}, {3});
  add(&differences, "sub", {Arg(0.0), slot(3)}, {4});
  add(&differences, "exp", {slot(4)}, {5});
  differences.set_outputs({5});
  EXPECT_THAT(without_identities(differences), HasSubstr("%4 = sub(input=0, %3)"));
  add(&dtypes, "to_dtype", {slot(1), Arg(static_cast<int64_t>(DType::kFloat64))}, {3});
  add(&dtypes, "exp", {slot(3)}, {4});
  dtypes.set_outputs({4});
  EXPECT_THAT(without_identities(dtypes), HasSubstr("to_dtype"));
  add(&quotients, "div", {slot(1), Arg(1.0), Arg(std::string_view("floor"))}, {3});
  add(&quotients, "exp", {slot(3)}, {4});
  quotients.set_outputs({4});
  EXPECT_THAT(without_identities(quotients), HasSubstr("div"));
}

TEST(RemoveIdentities, RemovesViewsThatCancel) {
  const std::vector<int64_t> to = {1, 2, 0}, back = {2, 0, 1}, same = {2, 3, 4}, kept = {-1, 3, 4};
  const auto ints = [](const std::vector<int64_t>& list) { return Arg(absl::Span<const int64_t>(list)); };
  Program program;
  add(&program, "permute", {slot(1), ints(to)}, {3});
  add(&program, "permute", {slot(3), ints(back)}, {4});
  add(&program, "transpose", {slot(4), Arg(int64_t{0}), Arg(int64_t{-1})}, {5});
  add(&program, "transpose", {slot(5), Arg(int64_t{2}), Arg(int64_t{0})}, {6});
  add(&program, "reshape", {slot(6), ints(same)}, {7});
  add(&program, "expand", {slot(7), ints(kept)}, {8});
  add(&program, "contiguous", {slot(8)}, {9});
  add(&program, "exp", {slot(9)}, {10});
  program.set_outputs({10});
  EXPECT_EQ(without_identities(program, {2, 3, 4}), "%10 = exp(%1)\nread %10\n");
}

TEST(RemoveIdentities, RemovesAViewOfEverything) {
  const std::vector<int64_t> same = {4, 4};
  for (const char* op : {"reshape", "view", "expand"}) {
    Program program;
    add(&program, "exp", {slot(1)}, {3});
    add(&program, op, {slot(3), Arg(absl::Span<const int64_t>(same))}, {4});
    add(&program, "neg", {slot(4)}, {5});
    program.set_outputs({5});
    EXPECT_EQ(without_identities(program), "%3 = exp(%1)\n%5 = neg(%3)  # drops %1\nread %5\n");
  }
}

TEST(RemoveIdentities, RemovesViewsOfWhatItRemoves) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "mul", {slot(3), Arg(1.0)}, {4});
  add(&program, "t", {slot(4)}, {5});
  add(&program, "t", {slot(5)}, {6});
  add(&program, "neg", {slot(6)}, {7});
  program.set_outputs({7});
  EXPECT_EQ(without_identities(program), "%3 = exp(%1)\n%7 = neg(%3)  # drops %1\nread %7\n");
}

TEST(RemoveIdentities, MergesReshapesAndKeepsCopies) {
  const std::vector<int64_t> flat = {-1}, rows = {4, 4}, columns = {2, 8};
  const auto ints = [](const std::vector<int64_t>& list) { return Arg(absl::Span<const int64_t>(list)); };
  Program merged, copied, placed;
  add(&merged, "reshape", {slot(1), ints(flat)}, {3});
  add(&merged, "unsqueeze", {slot(3), Arg(int64_t{0})}, {4});
  add(&merged, "view", {slot(4), ints(columns)}, {5});
  add(&merged, "exp", {slot(5)}, {6});
  merged.set_outputs({6});
  EXPECT_EQ(without_identities(merged), "%5 = view(%1, size=[2, 8])\n%6 = exp(%5)  # drops %1\nread %6\n");
  add(&copied, "t", {slot(1)}, {3});
  add(&copied, "reshape", {slot(3), ints(flat)}, {4});  // in another order
  add(&copied, "view", {slot(4), ints(rows)}, {5});     // with the geometry of the input
  add(&copied, "exp", {slot(5)}, {6});
  copied.set_outputs({6});
  EXPECT_THAT(without_identities(copied), HasSubstr("%6 = exp(%5)"));
  add(&placed, "as_strided", {slot(1), ints(rows), ints({4, 1}), Arg(int64_t{0})}, {3});  // of another run's offset
  add(&placed, "exp", {slot(3)}, {4});
  placed.set_outputs({4});
  EXPECT_THAT(without_identities(placed), HasSubstr("as_strided"));
}

TEST(RemoveIdentities, KeepsTheErrorsOfConditions) {
  Program program;
  add(&program, "gt", {slot(2), Arg(0.0)}, {3});
  add(&program, "where", {slot(3), slot(1), slot(1)}, {4});
  add(&program, "mul", {slot(4), Arg(1.0)}, {5});
  add(&program, "expand_as", {slot(5), slot(2)}, {6});
  add(&program, "exp", {slot(6)}, {7});
  program.set_outputs({7});
  EXPECT_EQ(without_identities(program), "%7 = exp(%1)\nread %7\n");
  remove_identities(&program, InputMetas(Sizes{4, 4}, Sizes{4, 4}).types(program), /*keeps_errors=*/true);
  EXPECT_EQ(to_string(program),
            "%3 = gt(%2, other=0)\n%4 = where(%3, %1, %1)\n%6 = expand_as(%4, %2)\n%7 = exp(%6)\nread %7\n");
}

TEST(RemoveIdentities, KeepsWhatAnOutputIsAViewOf) {
  Program program;
  add(&program, "mul", {slot(1), Arg(1.0)}, {2});
  add(&program, "detach", {slot(2)}, {3});
  program.set_outputs({3});
  const std::string before = to_string(program);
  remove_identities(&program, InputMetas(Sizes{4}).types(program));
  EXPECT_EQ(to_string(program), before);
}

}  // namespace
}  // namespace tt
