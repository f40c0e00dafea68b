// The frames that a session sends, and the results its callers see, with an in-memory engine.
#include <atomic>
#include <thread>

#include "client/session/recomputation.h"
#include "tests/client/fixture.h"

namespace tt::client::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using SessionTest = FakeSession;

TEST_F(SessionTest, NamesResultsInOrder) {
  connect();
  Tensor a = make({2, 3});
  Tensor b = make({3});
  Tensor c = add(a, b);
  EXPECT_EQ(a->id, 1u);
  EXPECT_EQ(c->id, 3u);
  EXPECT_EQ(c->sizes, Sizes({2, 3}));
  session->synchronize();
  ASSERT_EQ(engine->executed.size(), 3u);
  const v1::Instruction& last = engine->executed[2];
  EXPECT_EQ(last.op(), op_id::kAdd);
  EXPECT_EQ(last.result(), 3u);
  ASSERT_EQ(last.args_size(), 2);  // alpha is omitted, since it has its default value
  EXPECT_EQ(last.args(0).handle(), 1u);
  EXPECT_EQ(last.args(1).handle(), 2u);
}

TEST_F(SessionTest, RejectsInvalidCallBeforeSending) {
  connect();
  Tensor a = make({2}), b = make({3});
  EXPECT_THROW(add(a, b), Error);
  session->synchronize();
  EXPECT_EQ(engine->executed.size(), 2u);
}

TEST_F(SessionTest, RejectsTooManyHandles) {
  engine->limits.set_max_handles(3);
  connect();
  Tensor a = make(), b = make(), c = make();
  try {
    add(a, b);
    FAIL() << "a fourth tensor was created";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_THAT(e.message(),
                HasSubstr("[add] makes 1 tensors, but this session has 3 already, and the engine allows at most 3"));
  }
  c = nullptr;
  Tensor d = add(a, b);  // the session stays usable
  session->synchronize();
  EXPECT_EQ(engine->executed.size(), 4u);
}

TEST_F(SessionTest, RejectsTensorsOfAnotherSession) {
  connect();
  Tensor mine = make();
  Ref<Session> other = Session::connect(std::make_unique<FakeTransport>(std::make_shared<FakeEngine>()), "other");
  const Arg args[] = {mine.get(), mine.get(), Arg(1)};
  EXPECT_THROW(other->call(op("add"), args), Error);
}

TEST_F(SessionTest, RejectsOperatorsMissingInEngine) {
  engine->max_op_id = op_id::kAdd - 1;
  connect();
  try {
    make();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kNotImplemented);
    EXPECT_THAT(e.message(), HasSubstr("[add] the engine (version fake) is older"));
  }
  session->synchronize();
}

TEST_F(SessionTest, RejectsOperatorsAndParametersMissingInEngine) {
  const auto add_operator = [&](uint16_t id, uint32_t parameters) {
    engine->operators.add_ids(id);
    engine->operators.add_parameters(parameters);
  };
  const auto error_of = [](auto call) -> std::string {
    try {
      call();
      return "";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kNotImplemented);
      return e.message();
    }
  };
  add_operator(op_id::kFull, static_cast<uint32_t>(op("full").params.size()));
  add_operator(op_id::kAdd, 2);  // without alpha
  connect();
  Tensor a = make();
  EXPECT_EQ(error_of([&] { add(a, a); }), "");
  const Arg scaled[] = {a.get(), a.get(), Arg(2)};
  EXPECT_THAT(
      error_of([&] { session->call(op("add"), scaled); }),
      HasSubstr("[add] the engine (version fake) is older than this client and does not have the parameter alpha"));
  const Arg two[] = {a.get(), a.get()};
  EXPECT_THAT(error_of([&] { session->call(op("mul"), two); }), HasSubstr("does not have this operator"));
  session->synchronize();
  EXPECT_EQ(engine->executed.size(), 2u);
}

// A function that never runs again.
class OneRun final : public Recomputation {
 public:
  OneRun() : Recomputation(true, false) {}
  std::shared_ptr<void> run_again() override { return nullptr; }
  void end_run() override {}

 private:
  void throw_error(const std::string& message) override { fail(ErrorKind::kRuntime, message); }
};

TEST_F(SessionTest, RejectsCheckpointsIfTheEngineCannotRecompute) {
  for (const auto& [id, parameters] :
       {std::pair(op_id::kFull, op("full").params.size()), std::pair(op_id::kAdd, op("add").params.size()),
        std::pair(op_id::kExp, op("exp").params.size()), std::pair(op_id::kSavedBegin, size_t{1})}) {
    engine->operators.add_ids(id);
    engine->operators.add_parameters(static_cast<uint32_t>(parameters));
  }
  connect();
  const Tensor x = make();
  x->requires_grad = true;
  const auto function = std::make_shared<OneRun>();
  const std::shared_ptr<SavedTensorHooks> run = function->first_run();
  const Arg args[] = {x.get()};
  try {
    session->call(op("exp"), args, {.saved = &run});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kNotImplemented);
    EXPECT_THAT(e.message(), HasSubstr("[saved_begin] the engine (version fake) is older"));
  }
  EXPECT_EQ(function->num_calls(), 0u);
  EXPECT_FALSE(session->call(op("exp"), args).empty());
  session->synchronize();
}

TEST_F(SessionTest, RejectsAMalformedTableOfOperators) {
  engine->operators.add_ids(op_id::kAdd);
  EXPECT_THROW(connect(), Error);
  engine->operators.add_parameters(UINT32_MAX);
  EXPECT_THROW(connect(), Error);
}

TEST_F(SessionTest, ReadsAValue) {
  connect();
  Tensor a = make();
  Tensor b = make();
  EXPECT_EQ(number(session->read(b)), 2.0f);
  EXPECT_EQ(number(session->read(a)), 1.0f);
  EXPECT_EQ(session->counters().waits, 2u);
}

TEST_F(SessionTest, DownloadsLargeValues) {
  connect();
  Tensor big = make({1 << 20});
  std::string bytes(4 << 20, '\0');
  session->read_into(big, absl::MakeSpan(bytes));
  EXPECT_EQ(bytes, std::string(4 << 20, '\1'));
  EXPECT_THROW(session->read_into(big, absl::MakeSpan(bytes).subspan(1)), Error);
}

TEST_F(SessionTest, SynchronizeWaitsForReleases) {
  connect();
  for (size_t i = 0; i < 20; ++i) {
    Tensor a = make();
    session->synchronize();
    a = nullptr;
    session->synchronize();
    std::lock_guard lock(engine->mutex);
    EXPECT_EQ(engine->released.size(), i + 1);
  }
}

TEST_F(SessionTest, ReleasesAreSentOnce) {
  connect();
  Tensor a = make();
  make();  // released at once
  Tensor c = add(a, a);
  session->synchronize();
  // The release travels with the instruction, or alone if the sender thread was faster than this one.
  std::lock_guard lock(engine->mutex);
  EXPECT_THAT(engine->released, ElementsAre(2u));
}

TEST_F(SessionTest, ReleasesAreSentWithoutInstructions) {
  connect();
  Tensor a = make();
  session->synchronize();
  a = nullptr;
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::lock_guard lock(engine->mutex);
    if (!engine->released.empty()) break;
  }
  EXPECT_THAT(engine->released, ElementsAre(1u));
}

TEST_F(SessionTest, FramesGrowWhileEngineIsBusy) {
  engine->paused = true;
  connect();
  Tensor a = make();
  constexpr int kCalls = 1000;
  std::vector<Tensor> results;
  for (int i = 0; i < kCalls; ++i) results.push_back(add(a, a));
  {
    std::lock_guard lock(engine->mutex);
    EXPECT_LE(engine->most_in_flight, 2);
    engine->paused = false;
    engine->changed.notify_all();
  }
  session->synchronize();
  EXPECT_EQ(engine->executed.size(), 1u + kCalls);
  EXPECT_LE(engine->frame_sizes.size(), 5u);
  for (int i = 0; i < kCalls; ++i) EXPECT_EQ(engine->executed[i + 1].result(), results[i]->id);
}

TEST_F(SessionTest, BusyEngineBlocksCallers) {
  engine->paused = true;
  connect();
  Tensor a = make();
  std::atomic<int> issued{0};
  constexpr int kCalls = 40'000;
  std::thread caller([&] {
    for (int i = 0; i < kCalls; ++i, ++issued) add(a, a);
  });
  int before = -1;
  while (issued != before) {
    before = issued;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_LT(issued, 3 * 1024 + 16);  // two frames in flight and one being built
  {
    std::lock_guard lock(engine->mutex);
    engine->paused = false;
    engine->changed.notify_all();
  }
  caller.join();
  session->synchronize();
  EXPECT_EQ(engine->executed.size(), 1u + kCalls);
}

TEST_F(SessionTest, ThreadsShareSession) {
  connect();
  Tensor a = make();
  constexpr int kThreads = 4, kCalls = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) {
        Tensor b = add(a, a);
        if (i % 50 == 0) EXPECT_EQ(number(session->read(b)), static_cast<float>(b->id));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  session->synchronize();
  ASSERT_EQ(engine->executed.size(), 1u + kThreads * kCalls);
  for (size_t i = 0; i < engine->executed.size(); ++i) EXPECT_EQ(engine->executed[i].result(), i + 1);
}

TEST_F(SessionTest, WritesIntoExistingTensor) {
  connect();
  Tensor a = make({2}), b = make({2});
  Tensor into[] = {a};
  Tensor result = add(a, b, {.into = into});
  EXPECT_EQ(result, a);
  EXPECT_EQ(a->version(), 1u);
  EXPECT_EQ(b->version(), 0u);
  session->synchronize();
  EXPECT_THAT(engine->executed.back().into(), ElementsAre(a->id));
  EXPECT_EQ(engine->executed.back().result(), 0u);
  Tensor wrong[] = {make({5})};
  EXPECT_THROW(add(a, b, {.into = wrong}), Error);
}

TEST_F(SessionTest, PoisonedValueThrowsRootError) {
  connect();
  uint32_t site = session->site("train.py", 12, "step");
  EXPECT_EQ(session->site("train.py", 12, "step"), site);
  EXPECT_NE(session->site("train.py", 13, "step"), site);
  Tensor a = make();
  v1::Error& error = engine->poison[a->id];
  error.set_kind(v1::INDEX);
  error.set_message("[gather] index 7 is out of bounds");
  error.set_site(site);
  try {
    session->read(a);
    FAIL();
  } catch (const RemoteError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIndex);
    EXPECT_EQ(e.site(), "train.py:12 in step");
    EXPECT_THAT(e.message(), HasSubstr("index 7 is out of bounds"));
    EXPECT_THAT(e.message(), HasSubstr("train.py:12"));
  }
  EXPECT_EQ(engine->sites.size(), 2u);
  Tensor b = make();
  EXPECT_EQ(number(session->read(b)), 2.0f);  // the session stays usable
}

TEST_F(SessionTest, WaitsAreReportedByLine) {
  connect();
  uint32_t site = session->site("train.py", 3, "");
  Tensor a = make();
  session->read(a, site);
  session->read(a, site);
  session->synchronize();
  auto report = session->wait_report();
  ASSERT_EQ(report.size(), 2u);
  for (const Session::Wait& wait : report) EXPECT_EQ(wait.count, wait.where == "train.py:3" ? 2u : 1u);
}

TEST_F(SessionTest, FaultEndsSession) {
  connect();
  Tensor a = make();
  session->synchronize();
  {
    std::lock_guard lock(engine->mutex);
    engine->last_sequence -= 1;  // makes the next frame out of order
  }
  EXPECT_THROW(session->read(a), RemoteError);
  EXPECT_THROW(make(), RemoteError);
}

TEST_F(SessionTest, CloseEndsSessionOnEngine) {
  connect();
  Tensor a = make();
  session->close();
  EXPECT_TRUE(engine->closed);
  session->close();
  EXPECT_THROW(make(), Error);
  EXPECT_THROW(session->read(a), Error);
  EXPECT_THROW(session->synchronize(), Error);
  a = nullptr;  // allowed after close()
}

TEST_F(SessionTest, HandlesOutliveCallersReference) {
  connect();
  Tensor a = make();
  session = nullptr;
  a = nullptr;  // ends the session
  EXPECT_TRUE(engine->closed);
}

}  // namespace
}  // namespace tt::client::testing
