// Ten thousand mutations of valid frames: the engine replies to each, and its memory returns to the initial size.
//
// Deterministic: a failure reports its number, and TT_MUTATION=<number> prints and runs only that one.
// TT_MUTATIONS=<count> sets the number of mutations.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "server/session/session.h"
#include "tests/fuzz/frame_mutator.h"
#include "tests/server/engine_memory.h"

namespace tt::server {
namespace {

using fuzz::Random;

constexpr int kMutations = 10000;

struct Tally {
  int refused = 0;
  uint64_t executed = 0;  // instructions
  uint64_t failed = 0;
};

void try_mutation(int number, Tally* tally) {
  Random random(static_cast<uint64_t>(number));
  Session::Options options;
  options.memory_limit = 64 << 20;
  options.transfer_timeouts = {std::chrono::milliseconds(0), std::chrono::milliseconds(0)};
  Session session(options);
  v1::Reply reply;
  session.execute(fuzz::first_frame(), &reply);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  v1::Frame frame = fuzz::random_frame(random);
  fuzz::mutate(&frame, random);
  reply.Clear();
  session.execute(frame, &reply);
  ASSERT_TRUE(reply.has_fault() == session.over() || frame.close());
  tally->refused += reply.has_fault();
  tally->executed += session.status().instructions();
  tally->failed += session.status().failed();
  session.close();
}

TEST(MutationTest, MutatedFramesLeaveEngineUsable) {
  testing::start_engine();
  if (const char* one = std::getenv("TT_MUTATION")) {
    Random random(static_cast<uint64_t>(std::atoi(one)));
    v1::Frame frame = fuzz::random_frame(random);
    fuzz::mutate(&frame, random);
    std::cout << frame.DebugString();
    Tally tally;
    return try_mutation(std::atoi(one), &tally);
  }
  Tally tally;
  uint64_t before = testing::engine_bytes();
  const char* more = std::getenv("TT_MUTATIONS");
  const int mutations = more ? std::atoi(more) : kMutations;
  for (int number = 0; number < mutations; ++number) {
    SCOPED_TRACE(number);
    try_mutation(number, &tally);
    ASSERT_EQ(testing::engine_bytes(), before);
  }
  // Most mutations are nearly valid, and at least partly executed.
  EXPECT_GT(tally.executed, static_cast<uint64_t>(mutations) * 4);
  std::cout << tally.refused << " refused, " << tally.executed << " instructions, " << tally.failed << " failed\n";
}

}  // namespace
}  // namespace tt::server
