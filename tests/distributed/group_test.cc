// ProcessGroup with its backends: ranks as threads of this process, over a MemoryStore.
#include "distributed/group/process_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <numeric>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "distributed/group_rendezvous.h"
#include "distributed/store/memory_store.h"
#include "gmock/gmock.h"
#include "tests/server/wait_until.h"

namespace tt::distributed {
namespace {

using ::testing::HasSubstr;

// One rank's group, with helpers that wait for its work.
class Rank {
 public:
  Rank(std::shared_ptr<Store> store, ProcessGroup::Options options, const std::string& backend)
      : group_(std::make_shared<ProcessGroup>(options, notifier_)) {
    formed_ = group_->form([store](const std::function<bool()>&) { return store; },
                           [backend](Store& s, const ProcessGroup::Options& o, const std::function<bool()>& cancelled) {
                             return connect_backend(s, o, backend, "127.0.0.1", PeerPolicy::any(), cancelled);
                           });
  }
  ProcessGroup& group() { return *group_; }
  int rank() const { return group_->rank(); }
  size_t size() const { return static_cast<size_t>(group_->size()); }
  void leave() { group_ = nullptr; }

  // Returns the work's error; "" if it succeeded.
  std::string wait(const std::shared_ptr<Work>& work) {
    for (;;) {
      const uint64_t seen = notifier_->notifications();
      if (work->ready()) break;
      notifier_->wait(seen, work->deadline());
    }
    return work->error() ? work->error()->message() : "";
  }
  std::string formed() { return wait(formed_); }

  std::string run(CollectiveKind kind, std::vector<float>& input, std::vector<float>& output, size_t count,
                  ReduceOp op = ReduceOp::kSum, int root = 0, double divisor = 1, const std::string& site = "") {
    ProcessGroup::Request request;
    request.collective.kind = kind;
    request.collective.op = op;
    request.collective.root = root;
    request.collective.count = count;
    request.collective.input = reinterpret_cast<const char*>(input.data());
    request.collective.output = reinterpret_cast<char*>(output.data());
    request.divisor = divisor;
    request.site = site;
    return wait(group_->start(std::move(request)));
  }
  std::string all_reduce(std::vector<float>& values, const std::string& site = "") {
    return run(CollectiveKind::kAllReduce, values, values, values.size(), ReduceOp::kSum, 0, 1, site);
  }
  std::string barrier() { return wait(group_->start({})); }
  std::string fail_with(CollectiveKind kind, const std::string& message) {
    ProcessGroup::Request request;
    request.collective.kind = kind;
    request.failure = message;
    request.site = "train.py:7";
    return wait(group_->start(std::move(request)));
  }
  ProcessGroup::Message message(std::vector<float>& values, int peer, uint32_t tag) {
    ProcessGroup::Message m;
    m.peer = peer;
    m.tag = tag;
    m.dtype = DType::kFloat32;
    m.bytes = reinterpret_cast<char*>(values.data());
    m.size = values.size() * sizeof(float);
    return m;
  }

 private:
  std::shared_ptr<SuspensionNotifier> notifier_ = std::make_shared<SuspensionNotifier>();
  std::shared_ptr<ProcessGroup> group_;
  std::shared_ptr<Work> formed_;
};

struct Case {
  std::string backend;
  int size;
};

class GroupTest : public ::testing::TestWithParam<Case> {
 protected:
  // Runs a function on a thread per rank.
  template <typename Run>
  void run(Run run) {
    const auto store = std::make_shared<MemoryStore>();
    std::vector<std::thread> threads;
    for (int r = 0; r < GetParam().size; ++r) {
      threads.emplace_back([&, r] {
        Rank rank(store, options(r), GetParam().backend);
        ASSERT_EQ(rank.formed(), "");
        run(rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  ProcessGroup::Options options(int rank) {
    ProcessGroup::Options options;
    options.name = "test";
    options.rank = rank;
    options.size = GetParam().size;
    return options;
  }
};

std::vector<float> iota(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_P(GroupTest, AllReduceOfSmallAndLargeTensors) {
  run([](Rank& rank) {
    const auto ranks = static_cast<float>(rank.size());
    for (size_t count : {size_t{0}, size_t{1}, size_t{32}, size_t{33}, size_t{1000}, size_t{700'001}}) {
      std::vector<float> values = iota(count, static_cast<float>(rank.rank()));
      ASSERT_EQ(rank.all_reduce(values), "");
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(values[i], ranks * static_cast<float>(i) + ranks * (ranks - 1) / 2) << count << " " << i;
      }
    }
  });
}

TEST_P(GroupTest, AverageDividesByTheSize) {
  run([](Rank& rank) {
    for (size_t count : {size_t{4}, size_t{4000}}) {
      std::vector<float> values(count, static_cast<float>(rank.rank()));
      ASSERT_EQ(rank.run(CollectiveKind::kAllReduce, values, values, count, ReduceOp::kSum, 0,
                         static_cast<double>(rank.size())),
                "");
      ASSERT_EQ(values[count - 1], static_cast<float>(rank.size() - 1) / 2);
    }
  });
}

TEST_P(GroupTest, ReduceChangesTheRootOnly) {
  run([](Rank& rank) {
    const int root = static_cast<int>(rank.size()) - 1;
    for (size_t count : {size_t{3}, size_t{5000}}) {
      std::vector<float> values(count, 1);
      ASSERT_EQ(rank.run(CollectiveKind::kReduce, values, values, count, ReduceOp::kSum, root), "");
      ASSERT_EQ(values[count / 2], rank.rank() == root ? static_cast<float>(rank.size()) : 1);
    }
  });
}

TEST_P(GroupTest, BroadcastGatherAndScatter) {
  run([](Rank& rank) {
    const size_t ranks = rank.size();
    const bool is_root = rank.rank() == 0;
    for (size_t count : {size_t{5}, size_t{30'000}}) {
      std::vector<float> values(count, static_cast<float>(rank.rank() + 10));
      ASSERT_EQ(rank.run(CollectiveKind::kBroadcast, values, values, count), "");
      ASSERT_EQ(values, std::vector<float>(count, 10));

      std::vector<float> mine(count, static_cast<float>(rank.rank()));
      std::vector<float> all(count * ranks);
      ASSERT_EQ(rank.run(CollectiveKind::kAllGather, mine, all, count), "");
      for (size_t r = 0; r < ranks; ++r) ASSERT_EQ(all[r * count + count - 1], static_cast<float>(r));

      std::vector<float> gathered(is_root ? count * ranks : 0);
      ASSERT_EQ(rank.run(CollectiveKind::kGather, mine, gathered, count), "");
      if (is_root) {
        ASSERT_EQ(gathered, all);
      }

      std::vector<float> piece(count);
      ASSERT_EQ(rank.run(CollectiveKind::kScatter, gathered, piece, count), "");
      ASSERT_EQ(piece, mine);

      std::vector<float> sum(count);
      ASSERT_EQ(rank.run(CollectiveKind::kReduceScatter, all, sum, count), "");
      ASSERT_EQ(sum[0], static_cast<float>(ranks * static_cast<size_t>(rank.rank())));
    }
  });
}

TEST_P(GroupTest, AllToAllWithUnequalCounts) {
  run([](Rank& rank) {
    ProcessGroup::Request request;
    Collective& c = request.collective;
    c.kind = CollectiveKind::kAllToAll;
    const auto me = static_cast<size_t>(rank.rank());
    std::vector<float> input;
    std::vector<float> expected;
    for (size_t r = 0; r < rank.size(); ++r) {
      c.send_counts.push_back(1000 * r + me);
      c.receive_counts.push_back(1000 * me + r);
      input.insert(input.end(), c.send_counts.back(), static_cast<float>(100 * me + r));
      expected.insert(expected.end(), c.receive_counts.back(), static_cast<float>(100 * r + me));
    }
    std::vector<float> output(expected.size());
    c.input = reinterpret_cast<const char*>(input.data());
    c.output = reinterpret_cast<char*>(output.data());
    ASSERT_EQ(rank.wait(rank.group().start(request)), "");
    ASSERT_EQ(output, expected);
  });
}

TEST_P(GroupTest, MessagesFromAnyRank) {
  run([](Rank& rank) {
    const size_t peers = rank.size() - 1;
    std::vector<float> values(1);
    if (peers == 0) {
      EXPECT_THROW(rank.group().receive_any(rank.message(values, 0, 3)), Error);
      return;
    }
    constexpr size_t kMessages = 50;
    std::vector<std::vector<float>> received(kMessages * peers, std::vector<float>(100));
    std::vector<std::vector<float>> sent;
    std::vector<std::shared_ptr<Work>> receives, sends;
    for (auto& r : received) receives.push_back(rank.group().receive_any(rank.message(r, 0, 3)));
    for (size_t i = 0; i < kMessages; ++i) sent.emplace_back(100, static_cast<float>(1000 * rank.rank() + i));
    for (auto& s : sent) {
      for (int peer = 0; peer <= static_cast<int>(peers); ++peer) {
        if (peer != rank.rank()) sends.push_back(rank.group().send(rank.message(s, peer, 3)));
      }
    }
    std::map<int64_t, size_t> next;  // messages of each sender arrive in their order
    for (size_t i = 0; i < received.size(); ++i) {
      ASSERT_EQ(rank.wait(receives[i]), "");
      const int64_t sender = receives[i]->value();
      ASSERT_NE(sender, rank.rank());
      const auto expected = static_cast<float>(1000 * sender + static_cast<int64_t>(next[sender]++));
      ASSERT_EQ(received[i], std::vector<float>(100, expected));
    }
    for (const auto& send : sends) ASSERT_EQ(rank.wait(send), "");
    for (const auto& [sender, count] : next) EXPECT_EQ(count, kMessages) << sender;
    EXPECT_EQ(next.size(), peers);
    ASSERT_EQ(rank.barrier(), "");
  });
}

TEST_P(GroupTest, MessagesInBothDirectionsAtOnce) {
  if (GetParam().size < 2) GTEST_SKIP() << "a message needs two ranks";
  run([](Rank& rank) {
    const int ranks = static_cast<int>(rank.size());
    const int next = (rank.rank() + 1) % ranks;
    const int previous = (rank.rank() + ranks - 1) % ranks;
    constexpr size_t kCount = 800'000;
    std::vector<float> sent = iota(kCount, static_cast<float>(rank.rank()));
    std::vector<float> received(kCount);
    const auto sending = rank.group().send(rank.message(sent, next, 3));
    const auto receiving = rank.group().receive(rank.message(received, previous, 3));
    ASSERT_EQ(rank.wait(sending), "");
    ASSERT_EQ(rank.wait(receiving), "");
    ASSERT_EQ(received, iota(kCount, static_cast<float>(previous)));
    ASSERT_EQ(rank.barrier(), "");
  });
}

TEST_P(GroupTest, DifferentCallsAreReportedWithBothLinesAndTheGroupContinues) {
  if (GetParam().size < 2) GTEST_SKIP() << "one rank cannot disagree";
  run([](Rank& rank) {
    std::vector<float> values(rank.rank() == 0 ? 10 : 20, 1);
    const std::string error = rank.all_reduce(values, rank.rank() == 0 ? "a.py:1" : "b.py:2");
    EXPECT_THAT(error, HasSubstr("rank 0 called all_reduce of 10 float32 with sum (a.py:1)"));
    EXPECT_THAT(error, HasSubstr("rank 1 called all_reduce of 20 float32 with sum (b.py:2)"));
    std::vector<float> next(3, 1);
    EXPECT_EQ(rank.all_reduce(next), "");
    EXPECT_EQ(next[0], static_cast<float>(rank.size()));
  });
}

TEST_P(GroupTest, FailedTensorOfOneRankIsAnErrorOnAll) {
  run([](Rank& rank) {
    std::vector<float> values(5000, 1);
    const int failing = static_cast<int>(rank.size()) - 1;
    const std::string error = rank.rank() == failing ? rank.fail_with(CollectiveKind::kAllReduce, "[add] wrong shape")
                                                     : rank.all_reduce(values);
    EXPECT_THAT(error,
                HasSubstr(absl::StrCat("rank ", failing, " called all_reduce with a failed tensor (train.py:7)")));
    EXPECT_THAT(error, HasSubstr("[add] wrong shape"));
    EXPECT_EQ(rank.barrier(), "");
  });
}

TEST_P(GroupTest, AbortOfOneRankEndsTheOthersWait) {
  if (GetParam().size < 2) GTEST_SKIP() << "needs a rank that waits";
  run([](Rank& rank) {
    std::vector<float> values(5000, 1);
    rank.barrier();  // all ranks are connected; some may still be in it when rank 0 aborts
    if (rank.rank() == 0) {
      rank.group().abort("stopped by the test");
      EXPECT_THAT(rank.all_reduce(values), HasSubstr("stopped by the test"));
    } else {
      EXPECT_THAT(rank.all_reduce(values), HasSubstr("rank 0 of the group \"test\" failed: stopped by the test"));
    }
  });
}

TEST_P(GroupTest, RankThatHasLeftIsNamed) {
  if (GetParam().size < 2) GTEST_SKIP() << "needs a rank that leaves";
  run([](Rank& rank) {
    ASSERT_EQ(rank.barrier(), "");
    if (rank.rank() == 1) return rank.leave();
    EXPECT_THAT(rank.barrier(), HasSubstr("rank 1 has left the group \"test\""));
  });
}

TEST(GroupFormation, NamesTheRankOfALostStore) {
  const auto store = std::make_shared<MemoryStore>();
  store->close("Socket closed");
  ProcessGroup::Options options;
  options.name = "job";
  options.size = 2;
  options.rank = 1;
  Rank rank(store, options, "gloo");
  EXPECT_THAT(rank.formed(), HasSubstr("the group \"job\" lost its store, which rank 0 serves"));
}

// A store in which rank 0, when it is connected and publishes that, waits for the end of another rank.
class DelayedStore final : public Store {
 public:
  using Strings = absl::Span<const std::string>;
  absl::Status set(Strings keys, Strings values) override {
    if (absl::EndsWith(keys[0], "/connected/0")) rank_has_left.WaitForNotification();
    return store_.set(keys, values);
  }
  absl::StatusOr<std::vector<std::string>> get(Strings keys, Milliseconds timeout) override {
    return store_.get(keys, timeout);
  }
  absl::Status wait(Strings keys, Milliseconds timeout) override { return store_.wait(keys, timeout); }
  absl::StatusOr<int64_t> add(const std::string& key, int64_t amount) override { return store_.add(key, amount); }
  absl::Status append(const std::string& key, const std::string& value) override { return store_.append(key, value); }
  absl::StatusOr<std::string> compare_set(const std::string& key, const std::string& expected,
                                          const std::string& desired) override {
    return store_.compare_set(key, expected, desired);
  }
  absl::StatusOr<bool> erase(const std::string& key) override { return store_.erase(key); }
  absl::StatusOr<bool> check(Strings keys) override { return store_.check(keys); }
  absl::StatusOr<int64_t> size() override { return store_.size(); }
  absl::StatusOr<std::unique_ptr<Membership>> join(const std::string& group, int rank, MemberLeft left) override {
    return store_.join(group, rank, std::move(left));
  }
  absl::Notification rank_has_left;

 private:
  MemoryStore store_;
};

// A rank that has formed the group fails in its first collective and ends, while another one is about to have formed it.
void form_while_another_rank_fails(const std::string& backend, bool calls) {
  const auto store = std::make_shared<DelayedStore>();
  ProcessGroup::Options options;
  options.name = "test";
  options.size = 2;
  Rank slow(store, options, backend);
  options.rank = 1;
  Rank failing(store, options, backend);
  ASSERT_EQ(failing.formed(), "");
  if (calls) {
    ProcessGroup::Request request;
    request.failure = "index out of range";
    failing.group().start(request);
  }
  failing.leave();
  store->rank_has_left.Notify();
  EXPECT_EQ(slow.formed(), "");
  EXPECT_THAT(slow.barrier(), HasSubstr(calls ? "rank 1 of the group \"test\" failed: it called a collective with a failed "
                                                "tensor: index out of range"
                                              : "rank 1 has left the group \"test\""));
}

TEST(GroupFormation, SucceedsIfARankThatHasFormedTheGroupFails) {
  form_while_another_rank_fails("shm", true);
  form_while_another_rank_fails("gloo", true);
}

TEST(GroupFormation, SucceedsIfARankThatHasFormedTheGroupLeaves) {
  form_while_another_rank_fails("shm", false);
  form_while_another_rank_fails("gloo", false);
}

TEST(GroupFormation, FailsIfTheSessionOfARankEndsMeanwhile) {
  const auto store = std::make_shared<MemoryStore>();
  ProcessGroup::Options options;
  options.name = "test";
  options.size = 3;
  Rank waiting(store, options, "gloo");
  options.rank = 1;
  auto leaving = std::make_unique<Rank>(store, options, "gloo");
  const std::string key = "test/rank/1";
  ASSERT_TRUE(store->wait({&key, 1}, std::chrono::seconds(60)).ok());
  leaving = nullptr;
  EXPECT_THAT(waiting.formed(), HasSubstr("rank 1 of the group \"test\" failed: its session ended while the group was"));
}

TEST(TaskQueue, ItsThreadEndsWithoutTasksAndStartsAgain) {
  TaskQueue queue(std::chrono::milliseconds(1));
  std::atomic<int> done{0};
  for (int round = 1; round <= 3; ++round) {
    queue.add([&] { ++done; });
    queue.add([&] { ++done; });
    ASSERT_TRUE(server::testing::wait_until([&] { return !queue.has_thread(); }));
    EXPECT_EQ(done, 2 * round);
  }
}

TEST(GroupFormation, NamesMissingRanks) {
  const auto store = std::make_shared<MemoryStore>();
  ProcessGroup::Options options;
  options.name = "incomplete";
  options.size = 3;
  options.rank = 1;
  options.timeout = std::chrono::milliseconds(1);
  Rank rank(store, options, "gloo");
  EXPECT_THAT(rank.formed(), HasSubstr("expected 3 ranks in group \"incomplete\", missing: rank 0, 2"));
}

TEST(GroupFormation, EndsWithItsSession) {
  const auto store = std::make_shared<MemoryStore>();
  ProcessGroup::Options options;
  options.name = "incomplete";
  options.size = 2;
  Rank rank(store, options, "gloo");
  rank.leave();  // returns although rank 1 never arrives
}

INSTANTIATE_TEST_SUITE_P(Backends, GroupTest,
                         ::testing::Values(Case{"gloo", 1}, Case{"gloo", 2}, Case{"gloo", 3}, Case{"gloo", 4},
                                           Case{"shm", 1}, Case{"shm", 2}, Case{"shm", 3}, Case{"shm", 4}),
                         [](const auto& info) { return absl::StrCat(info.param.backend, info.param.size); });

}  // namespace
}  // namespace tt::distributed
