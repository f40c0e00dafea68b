// The generated functions and methods, on the samples of the operators' declarations, compared with calls by the
// operator's table.
#include <tuple>
#include <utility>

#include "client/api/dispatch.h"
#include "engine/schema/op.h"
#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

// The results of the functions and methods of one operator.
struct Results {
  std::vector<std::vector<Tensor>> calls;

  void add(Tensor tensor) { calls.push_back({std::move(tensor)}); }
  void add(std::vector<Tensor> tensors) { calls.push_back(std::move(tensors)); }
  template <typename... T>
  void add(std::tuple<T...> tensors) {
    calls.push_back(std::apply([](auto&... t) { return std::vector<Tensor>{t...}; }, tensors));
  }
};

struct Row {
  const char* op;
  std::vector<std::vector<int64_t>> sizes;
  void (*call)(const Tensor* tensors, Results& results);
};

const Row kRows[] = {
#include "client/api/sample_rows.inc"
};

// The operator's results, or the message of its error.
std::pair<std::vector<Tensor>, std::string> expected(const tt::Op& op, const std::vector<Tensor>& tensors) {
  std::vector<tt::Arg> args;
  for (size_t i = 0; i < op.params.size(); ++i) {
    args.push_back(i < tensors.size() ? tensors[i].arg() : op.params[i].default_value);
  }
  std::vector<Tensor> results;
  const std::string message = message_of<Error>([&] { results = internal::call_list(op.id, args); });
  return {results, message};
}

TEST_F(Api, FunctionsAndMethodsCallTheirOperators) {
  size_t compared = 0;
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.op);
    std::vector<Tensor> tensors;
    for (const std::vector<int64_t>& sizes : row.sizes) {
      int64_t count = 1;
      for (int64_t size : sizes) count *= size;
      const auto phase = static_cast<double>(tensors.size());
      tensors.push_back(((arange(count, kFloat) + phase).sin() * 0.4 + 0.5).view(sizes));
    }
    const auto [results, message] = expected(*tt::find_op(std::string_view(row.op)), tensors);
    Results got;
    const std::string got_message = message_of<Error>([&] { row.call(tensors.data(), got); });
    EXPECT_EQ(got_message, message);
    for (const std::vector<Tensor>& call : got.calls) {
      ASSERT_EQ(call.size(), results.size());
      for (size_t i = 0; i < call.size(); ++i) {
        EXPECT_EQ(call[i].sizes(), results[i].sizes());
        ASSERT_EQ(call[i].dtype(), results[i].dtype());
        const Tensor same = call[i].is_complex() ? call[i] == results[i] : call[i].isclose(results[i], 0, 0, true);
        EXPECT_TRUE(same.all().item<bool>());
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 300u);
}

}  // namespace
}  // namespace teletensor::testing
