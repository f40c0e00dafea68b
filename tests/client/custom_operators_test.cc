// Operators of shared objects, called by the C++ client.
#include "client/session/custom_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "engine/schema/error.h"
#include "tests/client/daemon.h"
#include "tests/client/daemon_session.h"

namespace tt::client::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A copy of the library, where nobody else may change it, whatever the modes of the build folder are.
class OperatorFolder {
 public:
  static const OperatorFolder& instance() {
    static const OperatorFolder folder;
    return folder;
  }
  ~OperatorFolder() { fs::remove_all(path_); }
  std::string path() const { return path_; }

 private:
  OperatorFolder() {
    path_ = mkdtemp(path_.data());
    const fs::path file = fs::path(path_) / "check.so";
    fs::copy_file(TT_OPERATORS, file);
    fs::permissions(file, fs::perms::owner_all);
  }
  std::string path_ = "/tmp/teletensor-operators-XXXXXX";
};

std::vector<float> values(const Tensor& tensor) {
  const Value value = tensor->session->read(tensor);
  std::vector<float> numbers(value.bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), value.bytes.data(), value.bytes.size());
  return numbers;
}

std::string error_of(Session& session, std::string_view name, Args args, absl::Span<const Keyword> keywords = {}) {
  try {
    call_custom(session, name, args, keywords);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(CustomOperators, AreCalledByName) {
  Daemon daemon({"--operators", OperatorFolder::instance().path()});
  Ref<Session> session = connect_to(daemon, true);
  const Tensor x = full(*session, {3}, 2);
  const Arg both[] = {x.get(), x.get()};
  const Keyword scale[] = {{"scale", Arg(3.0)}};
  EXPECT_THAT(values(call_custom(*session, "check::scaled_add", both)[0]), ElementsAre(4, 4, 4));
  EXPECT_THAT(values(call_custom(*session, "check::scaled_add", both, scale)[0]), ElementsAre(8, 8, 8));
  // Sizes that the library determines: one question, and then none.
  const int64_t times[] = {1, 1};
  const Arg repeated[] = {x.get(), Arg(absl::MakeConstSpan(times))};
  for (int i = 0; i < 2; ++i) {
    const Tensor result = call_custom(*session, "check::repeat", repeated)[0];
    EXPECT_EQ(result->sizes, (Sizes{2, 3}));
    EXPECT_THAT(values(result), ElementsAre(2, 2, 2, 2, 2, 2));
  }
  EXPECT_THAT(error_of(*session, "check::missing", both), HasSubstr("no operator of this name"));
  EXPECT_THAT(error_of(*session, "check::scaled_add", Args(both, 1)), HasSubstr("missing the argument 'b'"));
  const Keyword unknown[] = {{"factor", Arg(3.0)}}, twice[] = {{"a", x.get()}};
  EXPECT_THAT(error_of(*session, "check::scaled_add", both, unknown), HasSubstr("unexpected argument 'factor'"));
  EXPECT_THAT(error_of(*session, "check::scaled_add", both, twice), HasSubstr("several values for the argument 'a'"));
  const Keyword text[] = {{"scale", Arg(std::string_view("two"))}};
  EXPECT_THAT(error_of(*session, "check::scaled_add", both, text), HasSubstr("argument 'scale' must be float"));
  EXPECT_THAT(values(x), ElementsAre(2, 2, 2));
}

TEST(CustomOperators, OfSeveralSessionsAndThreads) {
  Daemon daemon({"--operators", OperatorFolder::instance().path()}), plain;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&daemon, i] {
      Ref<Session> session = connect_to(daemon, i % 2 == 0);
      const Tensor x = full(*session, {2}, 1);
      const Arg both[] = {x.get(), x.get()};
      for (int k = 0; k < 20; ++k)
        EXPECT_THAT(values(call_custom(*session, "check::scaled_add", both)[0]), ElementsAre(2, 2));
    });
  }
  for (std::thread& thread : threads) thread.join();
  Ref<Session> session = connect_to(plain, true);
  EXPECT_TRUE(custom_operators(*session).empty());
  Ref<Session> other = connect_to(daemon, true);
  const Op& op = custom_operator(*other, "check::softsign").op();
  const Tensor x = full(*session, {2}, 1);
  const Arg args[] = {x.get(), Arg(1.0)};
  EXPECT_THROW(session->call(op, args), Error);  // and the session goes on
  EXPECT_THAT(values(x), ElementsAre(1, 1));
}

}  // namespace
}  // namespace tt::client::testing
