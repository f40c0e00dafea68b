// Values that depend on no input, by the text of Programs before and after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/device/cancellation.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/program/passes/fold_constants.h"
#include "engine/program/program_run.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "engine/session/programs.h"
#include "kernels/cpu/cpu.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using ::testing::HasSubstr;
using testing::InputMetas;
using testing::slot;

// The Program after fold_constants(), and the values of the constants.
class FoldConstants : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cpu::register_backend(Dispatcher::instance()); }
  std::string folded(Program program, const InputMetas& inputs) {
    constants_ = fold_constants(&program, inputs.metas(), /*grad_enabled=*/false);
    check_program(program, inputs.metas().size() + constants_.values.size());
    return to_string(program);
  }
  std::vector<float> values(size_t i) const {
    const Tensor& value = constants_.values[i];
    return {value.data_as<float>(), value.data_as<float>() + value.numel()};
  }

  static Tensor four_elements() {
    const InputMetas inputs(Sizes{4});
    return Tensor(new TensorImpl(*inputs.metas()[0], Ref<Storage>(new Storage(Device{}, 16))));
  }

  Context context_;
  ContextScope scope_{&context_};
  Constants constants_;
};

TEST_F(FoldConstants, ComputesWhatDependsOnNoInput) {
  const std::vector<int64_t> sizes = {2, 2};
  Program program;
  add(&program, "full", {Arg(absl::Span<const int64_t>(sizes)), Arg(1.0)}, {2});
  add(&program, "tril", {slot(2)}, {3});
  add(&program, "mul", {slot(1), slot(3)}, {4});
  add(&program, "neg", {slot(3)}, {5});
  add(&program, "add", {slot(4), slot(5)}, {6});
  program.set_outputs({6});
  EXPECT_EQ(folded(program, InputMetas(Sizes{2, 2})), "%6 = mul(%1, %2)\n%8 = add(%6, %3)  # drops %1, %2\nread %8\n");
  EXPECT_EQ(values(0), (std::vector<float>{1, 0, 1, 1}));
  EXPECT_EQ(values(1), (std::vector<float>{-1, -0.0F, -1, -1}));
  EXPECT_EQ(constants_.bytes, 32u);
  EXPECT_TRUE(constants_.values[0]->storage->is_read_only());
}

// %1 + full([4], 1) * 2.
Program with_constants() {
  const std::vector<int64_t> sizes = {4};
  Program program;
  add(&program, "full", {Arg(absl::Span<const int64_t>(sizes)), Arg(1.0)}, {2});
  add(&program, "mul", {slot(2), Arg(2.0)}, {3});
  add(&program, "add", {slot(1), slot(3)}, {4});
  program.set_outputs({4});
  return program;
}

TEST_F(FoldConstants, ExplanationsDefineConstants) {
  const DefinedProgram program(with_constants(), {1, 0}, {}, "");
  const Tensor input = four_elements();
  const std::string text = program.explain({absl::MakeConstSpan(&input, 1), {}});
  const size_t folded = text.find("# after fold_constants, which has computed 1 values");
  ASSERT_NE(folded, std::string::npos) << text;
  EXPECT_THAT(text.substr(folded), HasSubstr("\n%2 = constant float32[4]\n%5 = add(%1, %2)"));
  EXPECT_THAT(text.substr(text.rfind("# after")), HasSubstr("%2 = constant float32[4]\n"));
  EXPECT_EQ(text.substr(0, folded).find("constant float32"), std::string::npos);
}

TEST_F(FoldConstants, PassesStopWhenCancelled) {
  Cancellation cancellation;
  const CancellationScope scope(&cancellation);
  Program calls;  // nothing that a pass executes
  add(&calls, "exp", {slot(1)}, {2});
  calls.set_outputs({2});
  const DefinedProgram program(calls, {1, 0, /*exact=*/true}, {}, "");
  const Tensor input = four_elements();
  const ProgramInputs inputs{absl::MakeConstSpan(&input, 1), {}};
  cancellation.request(CancelReason::kEnded);
  EXPECT_THROW(program.explain(inputs), Cancelled);
  EXPECT_THROW(program.run(inputs), Cancelled);
  EXPECT_EQ(program.counters().signatures, 0) << "the passes are not complete";
}

TEST_F(FoldConstants, ViewsShareTheirStorage) {
  const std::vector<int64_t> sizes = {1, 2}, many = {100000, 2};
  Program program;
  add(&program, "full", {Arg(absl::Span<const int64_t>(sizes)), Arg(1.0)}, {2});
  add(&program, "add", {slot(1), slot(2)}, {3});
  add(&program, "expand", {slot(2), Arg(absl::Span<const int64_t>(many))}, {4});
  add(&program, "add", {slot(3), slot(4)}, {5});
  program.set_outputs({5});
  folded(program, InputMetas(Sizes{1, 2}));
  ASSERT_EQ(constants_.values.size(), 2u);
  EXPECT_EQ(constants_.bytes, 8u);
}

TEST_F(FoldConstants, KeepsDrawsOutputsAndWrites) {
  const std::vector<int64_t> sizes = {2};
  const Arg size(absl::Span<const int64_t>{sizes});
  Program drawn, returned, written, uninitialised;
  add(&drawn, "rand", {size}, {2});
  add(&drawn, "add", {slot(1), slot(2)}, {3});
  drawn.set_outputs({3});
  add(&returned, "full", {size, Arg(1.0)}, {2});
  add(&returned, "detach", {slot(2)}, {3});
  add(&returned, "add", {slot(1), slot(2)}, {4});
  returned.set_outputs({3, 4});
  add(&written, "full", {size, Arg(1.0)}, {2});
  add(&written, "detach", {slot(2)}, {3});
  add(&written, "add", {slot(3), slot(1)}, {3}, Instruction::kInto);
  add(&written, "add", {slot(1), slot(2)}, {4});
  written.set_outputs({4});
  add(&uninitialised, "empty", {size}, {2});
  add(&uninitialised, "add", {slot(1), slot(2)}, {3});
  uninitialised.set_outputs({3});
  for (const Program* program : {&drawn, &returned, &written, &uninitialised}) {
    EXPECT_EQ(folded(*program, InputMetas(Sizes{2})), to_string(*program));
    EXPECT_TRUE(constants_.values.empty());
  }
}

TEST_F(FoldConstants, HasLimitsAndLeavesErrorsToRuns) {
  const std::vector<int64_t> large = {Constants::kMaxValueBytes / 4 + 1}, most = {Constants::kMaxValueBytes / 4};
  Program program, many, failing;
  add(&program, "full", {Arg(absl::Span<const int64_t>(large)), Arg(1.0)}, {2});
  add(&program, "add", {slot(1), slot(2)}, {3});
  program.set_outputs({3});
  EXPECT_EQ(folded(program, InputMetas(Sizes{1})), to_string(program));
  Slot last = 1;
  for (int i = 0; i < 5; ++i) {
    add(&many, "full", {Arg(absl::Span<const int64_t>(most)), Arg(static_cast<double>(i))}, {last + 1});
    add(&many, "add", {slot(last), slot(last + 1)}, {last + 2});
    last += 2;
  }
  many.set_outputs({last});
  EXPECT_EQ(folded(many, InputMetas(Sizes{1})), to_string(many));
  EXPECT_TRUE(constants_.too_large);
  Program views;  // small parts of large storages
  last = 1;
  for (int i = 0; i < 5; ++i) {
    add(&views, "full", {Arg(absl::Span<const int64_t>(most)), Arg(static_cast<double>(i))}, {last + 1});
    add(&views, "slice", {slot(last + 1), Arg(int64_t{0}), Arg(int64_t{0}), Arg(int64_t{1}), Arg(int64_t{1})},
        {last + 2});
    add(&views, "add", {slot(last), slot(last + 2)}, {last + 3});
    last += 3;
  }
  views.set_outputs({last});
  EXPECT_EQ(folded(views, InputMetas(Sizes{1})), to_string(views));
  EXPECT_TRUE(constants_.too_large);
  const std::vector<int64_t> sizes = {2};
  add(&failing, "full", {Arg(absl::Span<const int64_t>(sizes)), Arg(1.0)}, {2});
  add(&failing, "full",
      {Arg(absl::Span<const int64_t>(sizes)), Arg(int64_t{7}), Arg(static_cast<int64_t>(DType::kInt64))}, {3});
  add(&failing, "index_select", {slot(2), Arg(int64_t{0}), slot(3)}, {4});  // no such row
  add(&failing, "add", {slot(1), slot(4)}, {5});
  failing.set_outputs({5});
  EXPECT_EQ(folded(failing, InputMetas(Sizes{2})), to_string(failing));
}

}  // namespace
}  // namespace tt
