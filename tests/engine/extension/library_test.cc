// Libraries of operators: tables with faults, and calls of functions that fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "engine/dispatch/operand.h"
#include "engine/dispatch/ops.h"
#include "engine/extension/library.h"
#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "kernels/cpu/cpu.h"

namespace tt::extension {
namespace {

using testing::HasSubstr;

int succeed(const teletensor_host*, teletensor_call*) { return 0; }
int double_it(const teletensor_host* host, teletensor_call* call) {
  const teletensor_tensor *x = host->tensor(call, 0), *out = host->result(call, 0);
  for (int64_t i = 0; i < x->numel; ++i) static_cast<float*>(out->data)[i] = 2 * static_cast<const float*>(x->data)[i];
  return 0;
}
int throw_it(const teletensor_host*, teletensor_call*) { throw std::logic_error("by a kernel"); }
// Uses every function wrongly, and then succeeds.
int misuse(const teletensor_host* host, teletensor_call* call) {
  const bool safe = host->tensor(call, -1) == nullptr && host->tensor(call, 99) == nullptr &&
                    host->tensor(call, 1) == nullptr && host->integers(call, 0) == nullptr &&
                    host->numbers(call, 0) == nullptr && host->text(call, 0) == nullptr &&
                    host->list_tensor(call, 0, 0) == nullptr && host->integer(call, 0) == 0 &&
                    host->number(call, 0) == 0 && host->length(call, 0) == 0 && host->result(call, 1) == nullptr &&
                    host->result(call, -1) == nullptr && host->is_none(call, 99) == 1 && host->stream(call) == nullptr;
  return safe ? 0 : host->fail(call, "a wrong use was not noticed");
}
int sets_in_kernel(const teletensor_host* host, teletensor_call* call) {
  const int64_t sizes[] = {1};
  host->set_result(call, 0, sizes, 1, TELETENSOR_FLOAT32);
  return 0;
}
// Whether arguments and results are described, and copied if they are not contiguous, only once.
int asks_again(const teletensor_host* host, teletensor_call* call) {
  const teletensor_tensor* const out = host->result(call, 0);
  for (int64_t i = 0; i < 2; ++i) {
    const teletensor_tensor* const first = host->list_tensor(call, 0, i);
    static_cast<float*>(out->data)[i] = static_cast<float>(first == host->list_tensor(call, 0, i));
  }
  return out == host->result(call, 0) ? 0 : 1;
}
int loops_backwards(const teletensor_host* host, teletensor_call* call) {
  return host->parallel_for(
      call, -1, 1, [](void*, int64_t, int64_t) {}, nullptr);
}
int loops_over_nothing(const teletensor_host* host, teletensor_call* call) {
  return host->parallel_for(call, 10, 1, nullptr, nullptr);
}
void throw_in_loop(void*, int64_t, int64_t) { throw std::logic_error("in a loop"); }
int loops(const teletensor_host* host, teletensor_call* call) {
  return host->parallel_for(call, 10, 1, throw_in_loop, nullptr);
}

teletensor_operator row(const char* schema, teletensor_function cpu) {
  return {schema, nullptr, "same(x)", "same(x)", nullptr, cpu, nullptr, nullptr, "none", 0};
}

struct LibraryTest : testing::Test {
  static void SetUpTestSuite() { cpu::register_backend(Dispatcher::instance()); }

  static OperatorLibrary add(const std::vector<teletensor_operator>& rows, const char* path = "test.so") {
    const teletensor_library library = {TELETENSOR_OPERATOR_ABI, sizeof(teletensor_operator), "test", rows.data(),
                                        rows.size()};
    return add_library(&library, path, 1, Dispatcher::instance());
  }
  static std::string refusal(const teletensor_library* library) {
    try {
      add_library(library, "bad.so", 1, Dispatcher::instance());
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }
  static std::string error_of(const char* op) {
    Tensor x = empty({4}, DType::kFloat32, {});
    const Arg args[] = {Arg(x.get())};
    try {
      ops::call(find_op(op)->id, args);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }

  Context context;
  ContextScope scope{&context};
};

TEST_F(LibraryTest, CallsKernels) {
  const OperatorLibrary library = add({row("calls::twice(Tensor x) -> Tensor", double_it)});
  EXPECT_EQ(library.operators, std::vector<std::string>{"calls::twice"});
  Tensor x = empty({2, 2}, DType::kFloat32, {});
  for (int i = 0; i < 4; ++i) x.data_as<float>()[i] = static_cast<float>(i);
  const Arg args[] = {Arg(x.get())};
  const Tensors result = ops::call(find_op("calls::twice")->id, args);
  EXPECT_EQ(result[0].data_as<float>()[3], 6.0f);
  // Into an existing tensor that shares the argument's memory.
  ops::call(find_op("calls::twice")->id, args, {&x, 1});
  EXPECT_EQ(x.data_as<float>()[3], 6.0f);
}

TEST_F(LibraryTest, RefusesTables) {
  const teletensor_operator good = row("refused::f(Tensor x) -> Tensor", succeed);
  teletensor_library library = {TELETENSOR_OPERATOR_ABI + 1, sizeof(teletensor_operator), "bad", &good, 1};
  EXPECT_THAT(refusal(nullptr), HasSubstr("refuses this daemon"));
  EXPECT_THAT(refusal(&library), HasSubstr("built for version 2"));
  library.abi = TELETENSOR_OPERATOR_ABI;
  library.operator_size = 16;
  EXPECT_THAT(refusal(&library), HasSubstr("entries of 16 bytes"));
  library.operator_size = sizeof(teletensor_operator);
  library.operators = nullptr;
  EXPECT_THAT(refusal(&library), HasSubstr("operators"));
  library.operators = &good;
  library.count = size_t{1} << 40;
  EXPECT_THAT(refusal(&library), HasSubstr("it has 1099511627776 operators"));
  const teletensor_operator nameless = row(nullptr, succeed);
  library = {TELETENSOR_OPERATOR_ABI, sizeof(teletensor_operator), nullptr, &nameless, 1};
  EXPECT_THAT(refusal(&library), HasSubstr("no schema"));
  const std::string long_schema = "refused::f(Tensor x) -> Tensor" + std::string(size_t{1} << 17, ' ');
  const teletensor_operator endless = row(long_schema.c_str(), succeed);
  library.operators = &endless;
  EXPECT_THAT(refusal(&library), HasSubstr("more than 65536 characters"));
  teletensor_operator flagged = good;
  flagged.flags = 64;
  library.operators = &flagged;
  EXPECT_THAT(refusal(&library), HasSubstr("flags that this daemon does not know"));
  library.operators = &good;
  library.operator_size = sizeof(teletensor_operator) + 4;
  EXPECT_THAT(refusal(&library), HasSubstr("not aligned"));
  // A later header's longer rows: refused if they say something that this daemon would ignore.
  struct LaterOperator {
    teletensor_operator known;
    const char* added;
  } later = {good, "means something"};
  library.operators = &later.known;
  library.operator_size = sizeof(LaterOperator);
  EXPECT_THAT(refusal(&library), HasSubstr("uses members of a later version"));
  EXPECT_EQ(find_op("refused::f"), nullptr);  // nothing of a refused library is registered
}

TEST_F(LibraryTest, RefusesNamesOfOtherLibraries) {
  add({row("names::f(Tensor x) -> Tensor", succeed)}, "first.so");
  const teletensor_operator again[] = {row("names::g(Tensor x) -> Tensor", succeed),
                                       row("names::f(Tensor x, int n=1) -> Tensor", succeed)};
  const teletensor_library library = {TELETENSOR_OPERATOR_ABI, sizeof(teletensor_operator), "second", again, 2};
  EXPECT_THAT(refusal(&library), HasSubstr("is an operator of first.so too"));
  EXPECT_EQ(find_op("names::g"), nullptr);
}

TEST_F(LibraryTest, AcceptsLongerRowsThatSayNothingMore) {
  struct LaterOperator {
    teletensor_operator known;
    const char* added;
  };
  const LaterOperator later[] = {{row("later::f(Tensor x) -> Tensor", double_it), nullptr},
                                 {row("later::g(Tensor x) -> Tensor", double_it), nullptr}};
  const teletensor_library library = {TELETENSOR_OPERATOR_ABI, sizeof(LaterOperator), "later", &later[0].known, 2};
  EXPECT_EQ(add_library(&library, "later.so", 1, Dispatcher::instance()).operators.size(), 2u);
}

TEST_F(LibraryTest, DescribesEachTensorOnce) {
  teletensor_operator both = row("lists::f(Tensor[] x) -> Tensor", asks_again);
  both.shape = "[2]";
  both.dtype = "float32";
  add({both});
  const Tensor x = empty({3, 2}, DType::kFloat32, {});
  const Tensor turned = ops::transpose(x, 0, 1);
  const TensorMeta* const list[] = {turned.get(), x.get()};
  const Arg args[] = {Arg(absl::MakeConstSpan(list))};
  const Tensors result = ops::call(find_op("lists::f")->id, args);
  EXPECT_EQ(result[0].data_as<float>()[0], 1.0f);
  EXPECT_EQ(result[0].data_as<float>()[1], 1.0f);
}

TEST_F(LibraryTest, ContainsFailures) {
  add({row("fails::throws(Tensor x) -> Tensor", throw_it), row("fails::misuses(Tensor x) -> Tensor", misuse),
       row("fails::sets(Tensor x) -> Tensor", sets_in_kernel), row("fails::loops(Tensor x) -> Tensor", loops),
       row("fails::backwards(Tensor x) -> Tensor", loops_backwards),
       row("fails::without(Tensor x) -> Tensor", loops_over_nothing)});
  EXPECT_THAT(error_of("fails::throws"), HasSubstr("thrown a C++ exception: by a kernel"));
  EXPECT_EQ(error_of("fails::misuses"), "no error");
  EXPECT_THAT(error_of("fails::sets"), HasSubstr("outside of a rule"));
  EXPECT_THAT(error_of("fails::loops"), HasSubstr("in a loop"));
  EXPECT_THAT(error_of("fails::backwards"), HasSubstr("a parallel loop over -1 steps"));
  EXPECT_THAT(error_of("fails::without"), HasSubstr("without a function"));
  EXPECT_EQ(error_of("fails::misuses"), "no error");
}

}  // namespace
}  // namespace tt::extension
