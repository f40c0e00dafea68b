// GraphReplayer: a repeated trace becomes one launch, and nothing else changes.
#include "kernels/cuda/runtime/graph_replayer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "engine/schema/error.h"
#include "kernels/cuda/launch/launch_host.h"
#include "kernels/cuda/runtime/stream.h"
#include "tests/cuda/simulated/engine.h"

namespace tt::cuda {
namespace {

class GraphReplayerTest : public testing::Test {
 protected:
  GraphReplayerTest() : streams_(engine_.gpu()), stream_(streams_.lease()) {
    make_current(engine_.gpu());
    engine_.runtime().refuse_graphs(false);
  }

  template <typename F>
  void add(const F& f) {
    stream_->add(*KernelLaunchWith<F>(
        [](const KernelLaunch& launch, StreamHandle stream) { parameters_of<F>(launch)(stream); }, f));
  }
  // Appends `value` to written_, as a kernel would. 64 bits, because padding bytes could differ between equal launches.
  void write(int64_t value) {
    add([to = &written_, value](StreamHandle stream) {
      enqueue(stream, [=] { to->push_back(static_cast<int>(value)); });
    });
  }
  // Appends -`value`, by another kernel function.
  void negate(int64_t value) {
    add([to = &written_, value](StreamHandle stream) {
      enqueue(stream, [=] { to->push_back(static_cast<int>(-value)); });
    });
  }
  void write_all(int from, int n) {
    for (int i = 0; i < n; ++i) write(from + i);
  }
  std::vector<int> written() {
    stream_->synchronize();
    return std::exchange(written_, {});
  }
  static std::vector<int> range(int from, int n) {
    std::vector<int> values(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) values[static_cast<size_t>(i)] = from + i;
    return values;
  }
  ReplayCounts counts() { return stream_->replays(); }

  SimulatedEngine engine_;
  StreamPool streams_;
  std::unique_ptr<CudaStream> stream_;
  std::vector<int> written_;
};

TEST_F(GraphReplayerTest, ThirdRepetitionIsOneGraphLaunch) {
  for (int round = 0; round < 5; ++round) {
    engine_.runtime().forget_calls();
    write_all(0, 20);
    EXPECT_EQ(written(), range(0, 20)) << "in round " << round;
  }
  EXPECT_EQ(counts().graphs, 1u);
  EXPECT_EQ(counts().replays, 3u);
  EXPECT_EQ(counts().launches, 60u);
  EXPECT_EQ(counts().changed, 0u);
  EXPECT_THAT(engine_.runtime().calls(), testing::ElementsAre("cudaGraphLaunch", "cudaStreamSynchronize"));
}

TEST_F(GraphReplayerTest, UpdatesChangedParametersInGraph) {
  for (int round = 0; round < 5; ++round) {
    write_all(0, 19);
    write(100 + round);
    std::vector<int> expected = range(0, 19);
    expected.push_back(100 + round);
    EXPECT_EQ(written(), expected);
  }
  EXPECT_EQ(counts().replays, 3u);
  EXPECT_EQ(counts().changed, 3u);
}

TEST_F(GraphReplayerTest, DivergingSequenceIsIssuedInOrder) {
  for (int round = 0; round < 3; ++round) write_all(0, 20), written();
  write_all(0, 15);
  negate(7);
  write_all(50, 3);
  std::vector<int> expected = range(0, 15);
  expected.push_back(-7);
  for (int value : range(50, 3)) expected.push_back(value);
  EXPECT_EQ(written(), expected);
  write_all(0, 10);
  EXPECT_EQ(written(), range(0, 10)) << "expected only the first launches";
  write_all(0, 20);
  EXPECT_EQ(written(), range(0, 20));
  EXPECT_EQ(counts().replays, 2u);
}

TEST_F(GraphReplayerTest, KeepsSeveralGraphsAndSelectsMatchingOne) {
  const auto forward = [&] { write_all(0, 10); };
  const auto train = [&] {
    write_all(0, 10);
    for (int i = 0; i < 10; ++i) negate(i);
  };
  for (int round = 0; round < 6; ++round) {
    forward();
    EXPECT_EQ(written(), range(0, 10));
    train();
    std::vector<int> expected = range(0, 10);
    for (int i = 0; i < 10; ++i) expected.push_back(-i);
    EXPECT_EQ(written(), expected);
  }
  EXPECT_GE(counts().replays, 6u);
}

TEST_F(GraphReplayerTest, MarkEndsSequence) {
  std::vector<int> expected;
  for (int round = 0; round < 6; ++round) {
    write_all(round, 30);
    for (int value : range(round, 30)) expected.push_back(value);
    stream_->mark();
  }
  EXPECT_EQ(written(), expected);
  EXPECT_GT(counts().graphs + counts().replays, 1u);
}

TEST_F(GraphReplayerTest, HeldWorkIsIssuedWithoutWaiter) {
  for (int round = 0; round < 3; ++round) write_all(0, 20), written();
  engine_.runtime().forget_calls();
  write_all(0, 12);
  while (!engine_.runtime().has_work(stream_->handle())) std::this_thread::yield();  // issued by the watching thread
  write_all(12, 8);
  EXPECT_EQ(written(), range(0, 20));
}

TEST_F(GraphReplayerTest, HeldWorkKeepsItsMemory) {
  for (int round = 0; round < 3; ++round) write_all(0, 20), written();
  void* p = engine_.runtime().allocate(4096);
  write_all(0, 3);
  GraphReplayer::flush_all();
  engine_.runtime().free(p);
  EXPECT_EQ(written_.size(), 3u) << "freeing must wait for issued work";
  EXPECT_EQ(written(), range(0, 3));
}

TEST_F(GraphReplayerTest, FailedGraphIsReportedAndItsWorkIssued) {
  engine_.runtime().refuse_graphs(true);
  for (int round = 0; round < 4; ++round) {
    write_all(0, 20);
    EXPECT_EQ(written(), range(0, 20));
  }
  EXPECT_EQ(counts().graphs, 0u);
  EXPECT_EQ(counts().refusal, "CUDA error: the launch cannot be part of a graph");
}

TEST_F(GraphReplayerTest, GraphThatCannotBeUpdatedIsDropped) {
  for (int round = 0; round < 3; ++round) write_all(0, 20), written();
  engine_.runtime().refuse_graphs(true);
  write(7);
  write_all(1, 19);
  std::vector<int> expected = range(0, 20);
  expected[0] = 7;
  EXPECT_EQ(written(), expected);
  EXPECT_EQ(counts().graphs, 0u);
  EXPECT_EQ(counts().refusal, "the graph rejected new parameters of a launch");
}

TEST_F(GraphReplayerTest, AlternatingSequencesGetOneGraphEach) {
  for (int round = 0; round < 12; ++round) {
    write_all(100 * (round % 2), 20);
    EXPECT_EQ(written(), range(100 * (round % 2), 20));
  }
  EXPECT_EQ(counts().graphs, 2u);
  EXPECT_EQ(counts().replays, 10u);
  EXPECT_EQ(counts().changed, 0u);
}

TEST_F(GraphReplayerTest, GraphWithMostlyChangedNodesIsDropped) {
  for (int round = 0; round < 16; ++round) {
    write_all(100 * round, 20);
    EXPECT_EQ(written(), range(100 * round, 20));
  }
  EXPECT_EQ(counts().graphs, 0u);
  EXPECT_EQ(counts().refusal, "the launch parameters change every time");
}

TEST_F(GraphReplayerTest, ExplicitCaptureExcludesHeldWork) {
  for (int round = 0; round < 3; ++round) write_all(0, 20), written();
  write_all(0, 5);
  stream_->begin_capture();
  write_all(100, 20);
  const std::unique_ptr<Graph> graph = stream_->end_capture();
  EXPECT_EQ(written(), range(0, 5));
  graph->replay();
  EXPECT_EQ(written(), range(100, 20));
}

TEST_F(GraphReplayerTest, FailureOfHeldWorkIsReportedAtNextCall) {
  bool fails = false;
  const auto launch = [flag = &fails](StreamHandle) { check(!*flag, "it does not launch"); };
  const auto round = [&] {
    write_all(0, 10);
    add(launch);
    write_all(10, 10);
  };
  for (int i = 0; i < 3; ++i) round(), written();
  write_all(0, 10);
  add(launch);
  fails = true;
  EXPECT_EQ(written(), range(0, 10)) << "the work before the failed launch";
  EXPECT_THROW(write(0), Error);
  fails = false;
  round();
  EXPECT_EQ(written(), range(0, 20)) << "the stream must stay usable";
}

}  // namespace
}  // namespace tt::cuda
