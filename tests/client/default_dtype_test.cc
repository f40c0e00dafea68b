// The process's default dtype: the dtypes of results, and the instructions that a session sends.
#include "client/session/default_dtype.h"

#include "client/session/operand.h"
#include "tests/client/fixture.h"

namespace tt::client::testing {
namespace {

using ::testing::ElementsAre;

struct DefaultDtypeTest : FakeSession {
  ~DefaultDtypeTest() override { set_default_dtype(DType::kFloat32); }

  DType zeros() {
    const int64_t size[] = {2};
    const Arg args[] = {Arg(absl::MakeConstSpan(size)), Arg(), Arg()};
    return session->call(op("zeros"), args)[0]->dtype;
  }
};

TEST_F(DefaultDtypeTest, IsPartOfEachInstruction) {
  connect();
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16, DType::kFloat32}) {
    set_default_dtype(t);
    EXPECT_EQ(default_dtype(), t);
    EXPECT_EQ(zeros(), t);
  }
  session->synchronize();
  std::vector<uint32_t> sent;
  for (const v1::Instruction& instruction : engine->executed) sent.push_back(instruction.default_dtype());
  EXPECT_THAT(sent, ElementsAre(0, 9, 7, 6, 0));
  EXPECT_THROW(set_default_dtype(DType::kInt64), Error);
  EXPECT_THROW(set_default_dtype(DType::kFloat8E5m2), Error);
  EXPECT_EQ(default_dtype(), DType::kFloat32);
}

TEST_F(DefaultDtypeTest, OlderEnginesRefuse) {
  engine->default_dtypes = false;
  connect();
  EXPECT_EQ(zeros(), DType::kFloat32);
  set_default_dtype(DType::kFloat64);
  try {
    zeros();
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNotImplemented);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("older than this client"));
  }
  set_default_dtype(DType::kFloat32);
  EXPECT_EQ(zeros(), DType::kFloat32);
  session->synchronize();
  EXPECT_EQ(engine->executed.size(), 2u);
}

}  // namespace
}  // namespace tt::client::testing
