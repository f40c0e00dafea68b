// Chains of pointwise operators, fused into one kernel or run step by step: both equal the CPU's results.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/schema/op_ids.h"
#include "kernels/cuda/libraries/nvrtc.h"
#include "kernels/cuda/pointwise/chain.h"
#include "kernels/cuda/pointwise/chain_source.h"
#include "kernels/cuda/pointwise/pointwise_rows.h"
#include "tests/cuda/compare.h"
#include "tests/cuda/simulated/compiler.h"

namespace tt::cuda {
namespace {

using testing::filled;
using testing::transposed;

Arg result(uint64_t step) {
  Arg arg;
  arg.kind = Arg::Kind::kSlot;
  arg.slot = step;
  return arg;
}

struct StepSpec {  // an operator and its own arguments
  uint16_t op;
  std::vector<Arg> args;
};

std::vector<ChainStep> steps_of(const std::vector<StepSpec>& written, DType compute) {
  std::vector<ChainStep> steps;
  for (const StepSpec& step : written) steps.push_back({find_op(step.op), step.args, compute});
  return steps;
}

class ChainTest : public ::testing::Test {
 protected:
  ~ChainTest() override { unsetenv("TELETENSOR_SIMULATED_CXX"); }
  void compile_with_the_host() { setenv("TELETENSOR_SIMULATED_CXX", TT_CXX, 1); }

  // `write` returns a chain over its tensors.
  void expect_as_on_the_cpu(const std::string& what, const Tensors& tensors, Sizes sizes, DType compute, DType dtype,
                            const std::function<std::vector<StepSpec>(const Tensors&)>& write) {
    Tensors moved;
    for (const Tensor& t : tensors) moved.push_back(copy_to_device(t, engine_.gpu()));
    const Tensor want = empty(sizes, dtype, Device{}), got = empty(sizes, dtype, engine_.gpu());
    const std::vector<StepSpec> here = write(tensors), on_gpu = write(moved);
    Dispatcher::instance().chain_kernel(DeviceType::kCPU)(steps_of(here, compute), want);
    Dispatcher::instance().chain_kernel(DeviceType::kCUDA)(steps_of(on_gpu, compute), got);
    expect_same(got, want, is_floating(dtype) ? testing::tolerance_of(compute) : 0, what);
  }

  void expect_chains_as_on_the_cpu() {
    for (DType compute : {DType::kFloat32, DType::kFloat64}) {
      for (const Sizes& sizes : {Sizes{7, 9}, Sizes{16, 1024}}) {
        const Tensor column = filled({sizes[0], 1}, compute), half = filled(sizes, DType::kBFloat16);
        const Tensors tensors{filled(sizes, compute), column, half,
                              transposed(filled({sizes[1], sizes[0]}, compute), 0, 1), filled({}, DType::kFloat16)};
        expect_as_on_the_cpu("float", tensors, sizes, compute, compute, [](const Tensors& t) {
          return std::vector<StepSpec>{{op_id::kAdd, {Arg(t[0].get()), Arg(t[1].get()), Arg(2)}},
                                       {op_id::kMul, {result(0), Arg(t[2].get())}},
                                       {op_id::kSub, {result(1), Arg(t[3].get()), Arg(1)}},
                                       {op_id::kClampMin, {result(2), Arg(-1.5)}},
                                       {op_id::kPow, {result(3), Arg(2.0)}},
                                       {op_id::kMul, {result(4), Arg(t[4].get())}},
                                       {op_id::kTanh, {result(5)}}};
        });
        expect_as_on_the_cpu("bool", tensors, sizes, compute, DType::kBool, [](const Tensors& t) {
          return std::vector<StepSpec>{{op_id::kExp, {Arg(t[0].get())}}, {op_id::kGt, {result(0), Arg(t[3].get())}}};
        });
      }
    }
    for (DType compute : {DType::kInt32, DType::kInt64}) {
      const Tensors tensors{filled({5, 11}, compute), filled({11}, DType::kInt8), filled({5, 1}, DType::kBool)};
      expect_as_on_the_cpu("int", tensors, {5, 11}, compute, compute, [](const Tensors& t) {
        return std::vector<StepSpec>{{op_id::kMul, {Arg(t[0].get()), Arg(int64_t{1} << 30)}},
                                     {op_id::kAdd, {result(0), Arg(t[1].get()), Arg(3)}},
                                     {op_id::kMaximum, {result(1), Arg(t[2].get())}}};
      });
    }
  }

  SimulatedEngine engine_;
};

TEST_F(ChainTest, RunsStepsInOrder) { expect_chains_as_on_the_cpu(); }

TEST_F(ChainTest, RejectsIntegerDivision) {
  const Tensor n = copy_to_device(filled({8}, DType::kInt64), engine_.gpu()),
               out = empty({8}, DType::kInt64, engine_.gpu());
  const std::vector<StepSpec> written{{op_id::kMul, {Arg(n.get()), Arg(2)}},
                                      {op_id::kRemainder, {result(0), Arg(n.get())}}};
  EXPECT_THROW(run_chain(steps_of(written, DType::kInt64), out), Error);
}

TEST_F(ChainTest, EqualChainsShareKernel) {
  const Tensor x = copy_to_device(filled({8}), engine_.gpu()), y = copy_to_device(filled({1}), engine_.gpu());
  const Tensor out = empty({8}, DType::kFloat32, engine_.gpu());
  const auto key = [&](uint16_t op, const Arg& other) {
    const std::vector<StepSpec> written{{op_id::kAdd, {Arg(x.get()), other, Arg(1)}}, {op, {result(0)}}};
    return ChainPlan(steps_of(written, DType::kFloat32), out).key();
  };
  EXPECT_EQ(key(op_id::kExp, Arg(2.0)), key(op_id::kExp, Arg(3.0)));
  EXPECT_NE(key(op_id::kExp, Arg(2.0)), key(op_id::kLog, Arg(2.0)));
  EXPECT_NE(key(op_id::kExp, Arg(2.0)), key(op_id::kExp, Arg(x.get())));
  EXPECT_NE(key(op_id::kExp, Arg(x.get())), key(op_id::kExp, Arg(y.get())));
}

bool computes_in(uint16_t op, DType compute) {
  for (const auto& file : pointwise_files()) {
    for (const PointwiseRow& row : file) {
      if (row.op == op)
        return compute == DType::kFloat32 ? !!row.f32 : compute == DType::kFloat64 ? !!row.f64 : !!row.i64;
    }
  }
  return false;
}

// Compiles all operators for a GPU with NVRTC, eight per chain.
TEST_F(ChainTest, NvrtcCompilesEveryBody) {
  const Nvrtc* nvrtc = Nvrtc::find();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  for (DType compute : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    const Tensor x = copy_to_device(filled({8}, compute), engine_.gpu()), out = empty({8}, compute, engine_.gpu());
    std::vector<StepSpec> written;
    int compiled = 0;
    const auto compile = [&] {
      const std::vector<ChainStep> steps = steps_of(written, compute);
      const ChainPlan plan(steps, out);
      ASSERT_TRUE(plan.possible());
      EXPECT_GT(nvrtc->compile(kNvrtcPrelude + plan.source(), 9, 0).size(), 1000u);
      compiled += static_cast<int>(written.size());
      written.clear();
    };
    for (const ChainBody& body : chain_bodies()) {
      if ((is_floating(compute) ? body.float_name : body.int_name).empty() || !computes_in(body.op, compute)) continue;
      StepSpec step{body.op, {}};
      for (const Param& p : find_op(body.op)->params) {
        if (p.type == ParamType::kTensor)
          step.args.push_back(written.empty() ? Arg(x.get()) : result(written.size() - 1));
        else
          step.args.push_back(p.default_value.is_none() ? Arg(2) : p.default_value);
      }
      written.push_back(std::move(step));
      if (written.size() == kShortChain.steps) compile();
      if (HasFatalFailure()) return;
    }
    if (!written.empty()) compile();
    EXPECT_GT(compiled, 40);
  }
}

TEST_F(ChainTest, NvrtcUsesRegistersAndVectorMoves) {
  const Nvrtc* nvrtc = Nvrtc::find();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  const Tensor x = copy_to_device(filled({8, 16}), engine_.gpu()),
               row = copy_to_device(filled({16}, DType::kBFloat16), engine_.gpu());
  const Tensor out = empty({8, 16}, DType::kFloat32, engine_.gpu());
  const std::vector<StepSpec> written{{op_id::kAdd, {Arg(x.get()), Arg(row.get()), Arg(1)}},
                                      {op_id::kMul, {result(0), Arg(x.get())}}};
  const std::vector<ChainStep> steps = steps_of(written, DType::kFloat32);
  // No device has compute capability 9.9, so the output is PTX text.
  const std::string text = nvrtc->compile(kNvrtcPrelude + ChainPlan(steps, out).source(), 9, 9);
  EXPECT_THAT(text, ::testing::HasSubstr("ld.global.v4"));
  EXPECT_THAT(text, ::testing::HasSubstr("st.global.v4"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(".local")));
}

TEST_F(ChainTest, NvrtcReportsCompileErrors) {
  const Nvrtc* nvrtc = Nvrtc::find();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  try {
    nvrtc->compile("this is no program", 9, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("chain.cu(1): error"));
  }
}

TEST_F(ChainTest, Fused) {
  compile_with_the_host();
  const int before = simulated_compilations();
  expect_chains_as_on_the_cpu();
  EXPECT_EQ(simulated_compilations() - before, 6);  // two types each for float, bool and integer results
}

}  // namespace
}  // namespace tt::cuda
