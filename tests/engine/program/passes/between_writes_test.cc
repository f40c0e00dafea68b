// Passes over the parts of a Program between its writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "engine/program/passes/between_writes.h"
#include "engine/program/passes/leading_values.h"
#include "engine/program/passes/merge_equal.h"
#include "engine/schema/program_types.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::InputMetas;
using testing::slot;

TEST(MapBetweenWrites, ChangesEachPart) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "exp", {slot(1)}, {4});
  add(&program, "mul", {slot(3), slot(4)}, {5});
  add(&program, "add", {slot(2), slot(5)}, {2}, Instruction::kInto);
  add(&program, "exp", {slot(2)}, {6});  // not that of the first part
  add(&program, "exp", {slot(2)}, {7});
  add(&program, "sub", {slot(6), slot(7)}, {8});
  program.set_outputs({8});
  const InputMetas inputs(Sizes{4}, Sizes{4});
  std::vector<size_t> counts;
  const Program changed =
      map_between_writes(program, inputs.metas(), false, [&](Program part, absl::Span<const TensorMeta* const> metas) {
        counts.push_back(metas.size());
        merge_equal(&part, ProgramTypes(part, metas, false), /*recorded=*/false);
        return part;
      });
  EXPECT_THAT(counts, ::testing::ElementsAre(1, 1));  // the tensors that each part reads
  EXPECT_EQ(to_string(changed),
            "%3 = exp(%1)\n%4 = mul(%3, %3)  # drops %1\n%2 <- add(%2, %4)  # drops %3\n"
            "%5 = exp(%2)  # drops %4\n%6 = sub(%5, %5)  # drops %2\nread %6\n");
}

TEST(LeadingValues, DividesAtTheFirstWriteAndJoins) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "relu", {slot(3)}, {4});
  add(&program, "add", {slot(2), slot(4)}, {2}, Instruction::kInto);
  add(&program, "neg", {slot(3)}, {5});
  add(&program, "exp", {slot(2)}, {6});
  program.set_outputs({5, 6});
  const LeadingValues leading(program, 2, /*at_least=*/0);
  EXPECT_EQ(to_string(leading.program()), "%3 = exp(%1)\n%4 = relu(%3)  # drops %1\nread %4, %3\n");
  Program renamed;  // what passes may make of it
  add(&renamed, "exp", {slot(1)}, {7});
  add(&renamed, "relu", {slot(7)}, {8});
  renamed.set_outputs({8, 7});
  EXPECT_EQ(to_string(*leading.joined(std::move(renamed))),
            "%7 = exp(%1)\n%8 = relu(%7)  # drops %1\n%2 <- add(%2, %8)\n%9 = neg(%7)  # drops %8\n"
            "%10 = exp(%2)  # drops %7\nread %9, %10\n");
}

TEST(LeadingValues, AreAllOfAProgramWithoutWrites) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  program.set_outputs({2});
  const LeadingValues leading(program, 1, /*at_least=*/0);
  EXPECT_EQ(to_string(leading.program()), to_string(program));
}

}  // namespace
}  // namespace tt
