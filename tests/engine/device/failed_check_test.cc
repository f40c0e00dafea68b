// A trap in recoverable code becomes an exception; any other trap ends the process.

#include "engine/device/failed_check.h"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>
#include <thread>

#include "absl/container/inlined_vector.h"

namespace tt {
namespace {

void trap() { __builtin_trap(); }

volatile int quotient;             // volatile, so that the division is not optimised out
#if defined(__SANITIZE_ADDRESS__)  // its undefined-behaviour checks would end the program first
__attribute__((no_sanitize("undefined")))
#endif
void divide(volatile int a, volatile int b) {
  quotient = a / b;
}

class FailedCheckTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { recover_from_failed_checks(); }
#if defined(__SANITIZE_THREAD__)
  void SetUp() override { GTEST_SKIP() << "ThreadSanitizer delays the signal of a trap"; }
#endif
};

TEST_F(FailedCheckTest, IsThrownRepeatedly) {
  for (int i = 0; i < 3; ++i) EXPECT_THROW(run_with_check_recovery([] { trap(); }), FailedCheck);
}

TEST_F(FailedCheckTest, IsThrownForDivisionsByZero) {
  EXPECT_THROW(run_with_check_recovery([] { divide(1, 0); }), FailedCheck);
}

TEST_F(FailedCheckTest, KeepsOtherExceptionsAndNestedCalls) {
  EXPECT_THROW(run_with_check_recovery([] { throw std::runtime_error("other"); }), std::runtime_error);
  EXPECT_THROW(run_with_check_recovery([] {
                 EXPECT_THROW(run_with_check_recovery([] { trap(); }), FailedCheck);
                 trap();
               }),
               FailedCheck);
  bool ran = false;
  run_with_check_recovery([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST_F(FailedCheckTest, IsThrownOnFailingThread) {
  std::thread([] { EXPECT_THROW(run_with_check_recovery([] { trap(); }), FailedCheck); }).join();
}

TEST_F(FailedCheckTest, EndsProcessOutsideRecoverableCode) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(trap(), testing::KilledBySignal(SIGILL), "");
}

}  // namespace
}  // namespace tt
