// The tracer: opens CUPTI, links device work to the launch that issued it, and counts lost records.
#include "kernels/cuda/runtime/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/schema/error.h"
#include "kernels/cuda/runtime/library_status.h"
#include "kernels/cuda/runtime/stream.h"
#include "tests/cuda/simulated/engine.h"
#include "tests/cuda/simulated/loader.h"

namespace tt::cuda {
namespace {

class TracerTest : public testing::Test {
 protected:
  TracerTest() : streams_(engine_.gpu()), stream_(streams_.lease()) { make_current(engine_.gpu()); }
  void SetUp() override {
    if (simulated_cupti().empty()) GTEST_SKIP() << "compiled without CUPTI's headers";
    memory_ = engine_.runtime().allocate(4096);
  }
  void TearDown() override {
    if (memory_ != nullptr) engine_.runtime().free(memory_);
  }

  void fill(int count = 1) {
    for (int i = 0; i < count; ++i) stream_->zero(memory_, 64);
  }
  // What happened between start() and stop(): `count` fills of launch 3, and one outside of any launch.
  DeviceTrace trace(DeviceTracer& tracer, int count, uint64_t limit = 1000) {
    const uint32_t number = tracer.start(limit);
    fill();
    tracer.begin_launches(number, 3);
    fill(count);
    tracer.end_launches();
    stream_->synchronize();
    return tracer.stop(number);
  }
  static size_t count_of(const DeviceTrace& trace, DeviceActivity::Kind kind) {
    return static_cast<size_t>(std::count_if(trace.activities.begin(), trace.activities.end(),
                                             [=](const DeviceActivity& a) { return a.kind == kind; }));
  }

  SimulatedEngine engine_;
  StreamPool streams_;
  std::unique_ptr<CudaStream> stream_;
  void* memory_ = nullptr;
};

TEST_F(TracerTest, LinksWorkToItsLaunch) {
  const auto tracer = make_tracer();
  const DeviceTrace trace = this->trace(*tracer, 1);
  ASSERT_EQ(trace.activities.size(), 2U);
  const DeviceActivity &call = trace.activities[0], &fill = trace.activities[1];
  EXPECT_EQ(call.kind, DeviceActivity::kCall);
  EXPECT_EQ(trace.names[call.name], "cudaMemsetAsync");
  EXPECT_EQ(fill.kind, DeviceActivity::kFill);
  EXPECT_EQ(trace.names[fill.name], "Memset (Device)");
  EXPECT_EQ(fill.launch, 3U);
  EXPECT_EQ(call.launch, 3U);
  EXPECT_EQ(fill.correlation, call.correlation);
  EXPECT_EQ(fill.bytes, 64U);
  EXPECT_GT(fill.stream, 0U);
  EXPECT_GE(fill.start, call.start);
  EXPECT_GT(fill.end, fill.start);
  EXPECT_EQ(trace.dropped, 0U);
  EXPECT_EQ(trace.notice, "");
  for (const LibraryInfo& library : library_statuses()) {
    if (library.name == "CUPTI") {
      EXPECT_GE(library.version, "13");
    }
  }
}

TEST_F(TracerTest, NestedLaunchesAndSeveralTraces) {
  const auto tracer = make_tracer();
  const uint32_t first = tracer->start(100), second = tracer->start(100);
  tracer->begin_launches(first, 1);
  tracer->begin_launches(first, 2);
  fill();
  tracer->end_launches();
  fill();
  tracer->end_launches();
  tracer->begin_launches(second, 1);
  fill(3);
  tracer->end_launches();
  stream_->synchronize();
  const DeviceTrace trace = tracer->stop(first);
  EXPECT_EQ(count_of(trace, DeviceActivity::kFill), 2U);
  EXPECT_EQ(trace.activities[0].launch, 2U);
  EXPECT_EQ(trace.activities.back().launch, 1U);
  EXPECT_EQ(count_of(tracer->stop(second), DeviceActivity::kFill), 3U);
}

TEST_F(TracerTest, UsesBuffersAgain) {
  const auto tracer = make_tracer({.buffer_bytes = 512, .max_buffers = 24});
  for (int i = 0; i < 3; ++i) {
    const DeviceTrace trace = this->trace(*tracer, 200);
    EXPECT_EQ(count_of(trace, DeviceActivity::kFill), 200U);
    EXPECT_EQ(count_of(trace, DeviceActivity::kCall), 200U);
    EXPECT_EQ(trace.dropped, 0U);
  }
  EXPECT_LE(tracer->host_bytes(), 24U * 512U);
}

TEST_F(TracerTest, CountsLostRecords) {
  const auto tracer = make_tracer({.buffer_bytes = 512, .max_buffers = 3});  // fewer than wait to be delivered
  const DeviceTrace trace = this->trace(*tracer, 200);
  EXPECT_GT(trace.dropped, 100U);
  EXPECT_LT(count_of(trace, DeviceActivity::kFill), 200U);
  EXPECT_EQ(this->trace(*tracer, 1).dropped, 0U);
}

TEST_F(TracerTest, LimitsActivities) {
  const auto tracer = make_tracer();
  const DeviceTrace trace = this->trace(*tracer, 20, 10);
  EXPECT_LE(count_of(trace, DeviceActivity::kFill), 10U);
  EXPECT_GE(trace.dropped, 10U);
}

TEST_F(TracerTest, RecordsNothingBetweenTraces) {
  const auto tracer = make_tracer();
  trace(*tracer, 1);
  const uint64_t before = tracer->host_bytes();
  fill(100);
  stream_->synchronize();
  EXPECT_EQ(tracer->host_bytes(), before);
  EXPECT_EQ(trace(*tracer, 1).activities.size(), 2U);
}

// A repeated sequence is replayed as a graph, except while it is traced.
TEST_F(TracerTest, PausesReplay) {
  const auto tracer = make_tracer();
  const auto step = [&] {
    fill(16);
    stream_->mark();
  };
  for (int i = 0; i < 3; ++i) step();
  const uint64_t replays = stream_->replays().replays;
  ASSERT_GT(replays, 0U);
  const uint32_t number = tracer->start(1000);
  tracer->begin_launches(number, 0);
  step();
  tracer->end_launches();
  stream_->synchronize();
  EXPECT_EQ(count_of(tracer->stop(number), DeviceActivity::kFill), 16U);
  EXPECT_EQ(stream_->replays().replays, replays);
  step();
  EXPECT_GT(stream_->replays().replays, replays);
}

class RefusedTracerTest : public TracerTest, public testing::WithParamInterface<std::array<const char*, 3>> {};

TEST_P(RefusedTracerTest, ReportsWhy) {
  const auto [variable, value, message] = GetParam();
  setenv(variable, value, 1);
  const auto tracer = make_tracer();
  DeviceTrace trace = this->trace(*tracer, 5);
  EXPECT_THAT(trace.notice, testing::HasSubstr(message));
  EXPECT_THAT(trace.notice, testing::HasSubstr("CUDA events"));
  EXPECT_EQ(count_of(trace, DeviceActivity::kKernel), 5U);
  EXPECT_EQ(trace.activities[0].launch, 3U);
  EXPECT_EQ(trace.activities[0].stream, 1U);
  EXPECT_GT(trace.activities[0].end, trace.activities[0].start);
  EXPECT_EQ(this->trace(*tracer, 5, 2).dropped, 3U);
  unsetenv(variable);
  trace = this->trace(*tracer, 2);  // once the reason is gone
  EXPECT_EQ(trace.notice, "");
  EXPECT_EQ(count_of(trace, DeviceActivity::kFill), 2U);
}

INSTANTIATE_TEST_SUITE_P(, RefusedTracerTest,
                         testing::Values(std::array{"TELETENSOR_SIMULATED_WITHOUT", "cupti",
                                                    "CUPTI, which cannot be opened: simulated"},
                                         std::array{"TELETENSOR_SIMULATED_CUPTI", "refused", "ERR_NVGPUCTRPERM"},
                                         std::array{"TELETENSOR_SIMULATED_CUPTI", "old", "found API version 14"}));

}  // namespace
}  // namespace tt::cuda
