// Simulated devices detect faulty synchronisation between a group's threads, and accept correct code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "engine/dispatch/ops.h"
#include "kernels/cuda/launch/atomic.h"
#include "kernels/cuda/launch/shared_groups.h"
#include "tests/cuda/compare.h"
#include "tests/cuda/simulated/random_decisions.h"

namespace tt::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kGroups = 40;

class GroupsTest : public ::testing::Test {
 protected:
  GroupsTest() { set_simulated_seed(1); }

  Tensor zeros(int64_t n) { return ops::full({n}, int64_t{0}, DType::kInt64, engine_.gpu()); }
  std::vector<int64_t> values(const Tensor& t) {
    const Tensor read = copy_to_cpu(t);
    return {read.data_as<int64_t>(), read.data_as<int64_t>() + read.numel()};
  }
  // The device's error for work of kGroups groups; empty if there is none.
  template <typename F>
  std::string failure(F f) {
    const Queue queue(engine_.gpu());
    for_each_group(queue, kGroups, 1, f);
    try {
      queue.cuda_stream().synchronize();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  SimulatedEngine engine_;
};

// For tests that require more than one thread per group.
class GroupSyncTest : public GroupsTest {
 protected:
  void SetUp() override {
    if (kMaxThreads == 1) GTEST_SKIP() << "with a sanitizer a group has one thread";
  }
};

TEST_F(GroupsTest, EveryThreadOfEveryGroupRunsOnce) {
  for (int launch = 0; launch < 20; ++launch) {
    const Tensor runs = zeros(kGroups), sizes = zeros(kGroups);
    int64_t *run = runs.data_as<int64_t>(), *size = sizes.data_as<int64_t>();
    EXPECT_EQ(failure([=] TT_DEVICE(Group & group) {
                atomic_add(run + group.index(), int64_t{1} << (8 * group.rank()));
                if (group.rank() == 0) size[group.index()] = group.size();
              }),
              "");
    const std::vector<int64_t> all = values(runs), threads = values(sizes);
    for (int64_t i = 0; i < kGroups; ++i) {
      EXPECT_EQ(all[i], 0x0101010101010101 & (threads[i] == 8 ? -1 : (int64_t{1} << (8 * threads[i])) - 1));
    }
  }
}

TEST_F(GroupSyncTest, GroupsHaveOneOrSeveralWarps) {
  std::set<int64_t> sizes;
  for (int launch = 0; launch < 40; ++launch) {
    const Tensor size = zeros(1);
    int64_t* to = size.data_as<int64_t>();
    for_each_group(Queue(engine_.gpu()), 1, 1, [=] TT_DEVICE(Group & group) { to[0] = group.size(); });
    sizes.insert(values(size)[0]);
  }
  EXPECT_EQ(sizes, (std::set<int64_t>{2, 4, 6, 8}));
}

// Each thread passes a number to its neighbour, twice: a barrier precedes the read, and another one the next write.
struct NeighbourExchange {
  int64_t *sent, *received;  // kMaxThreads per group
  bool syncs_before_read, syncs_before_write;

  TT_DEVICE void operator()(Group& group) const {
    int64_t* own = sent + group.index() * kMaxThreads;
    const int next = (group.rank() + 1) % group.size();
    int64_t sum = 0;
    for (int64_t round = 1; round <= 2; ++round) {
      own[group.rank()] = round * (group.rank() + 1);
      if (syncs_before_read) group.sync();
      sum += own[next];
      if (syncs_before_write) group.sync();
    }
    received[group.index() * kMaxThreads + group.rank()] = sum == 3 * (next + 1);
  }
};

TEST_F(GroupSyncTest, MissingSyncGivesWrongValue) {
  const auto all_received = [&](bool syncs_before_read, bool syncs_before_write) {
    const Tensor sent = zeros(kGroups * kMaxThreads),
                 received = ops::full({kGroups * kMaxThreads}, int64_t{1}, DType::kInt64, engine_.gpu());
    EXPECT_EQ(failure(NeighbourExchange{sent.data_as<int64_t>(), received.data_as<int64_t>(), syncs_before_read,
                                        syncs_before_write}),
              "");
    const std::vector<int64_t> flags = values(received);
    return std::count(flags.begin(), flags.end(), 0) == 0;
  };
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    set_simulated_seed(seed);
    EXPECT_TRUE(all_received(true, true)) << seed;
    EXPECT_FALSE(all_received(false, true)) << seed;
    EXPECT_FALSE(all_received(true, false)) << seed;
    EXPECT_FALSE(all_received(false, false)) << seed;
  }
}

TEST_F(GroupSyncTest, SkippedReductionIsFailure) {
  const std::string what = failure([=] TT_DEVICE(Group & group) {
    if (group.rank() != 1) group.reduce(group.rank(), Add());
  });
  EXPECT_THAT(what, HasSubstr("CUDA error: threads of group"));
  EXPECT_THAT(what, HasSubstr("thread 0 reduces at "));
  EXPECT_THAT(what, HasSubstr("groups_test.cc:"));
  EXPECT_THAT(what, HasSubstr("thread 1 has ended"));
  EXPECT_THAT(what, HasSubstr("seed 1"));
  EXPECT_THAT(what, HasSubstr("SkippedReductionIsFailure"));
  EXPECT_EQ(failure([=] TT_DEVICE(Group & group) { group.reduce(group.rank(), Add()); }), "");  // still usable
}

TEST_F(GroupSyncTest, SyncBesideReductionIsFailure) {
  const std::string what = failure([=] TT_DEVICE(Group & group) {
    group.sync();
    if (group.rank() == 0)
      group.sync();
    else
      group.reduce(group.rank(), Add());
  });
  EXPECT_THAT(what, AllOf(HasSubstr("thread 0 syncs at "), HasSubstr("thread 1 reduces at ")));
}

TEST_F(GroupSyncTest, SyncsAtTwoPlacesAreFailure) {
  const std::string what = failure([=] TT_DEVICE(Group & group) {
    if (group.rank() == 0)
      group.sync();
    else
      group.sync();
  });
  EXPECT_THAT(what, HasSubstr("do not wait for each other"));
}

TEST_F(GroupSyncTest, UnequalSyncCountsAreFailure) {
  const std::string what = failure([=] TT_DEVICE(Group & group) {
    for (int i = group.rank(); i < 5; i += group.size()) group.sync();
  });
  EXPECT_THAT(what, HasSubstr("has ended"));
}

// Four words.
struct FourWords {
  int64_t sum, most, least, count;
};
struct Join {
  TT_FUNCTION FourWords operator()(const FourWords& a, const FourWords& b) const {
    return {a.sum + b.sum, a.most > b.most ? a.most : b.most, a.least < b.least ? a.least : b.least, a.count + b.count};
  }
};

TEST_F(GroupsTest, ReductionsReturnSameValueToEveryThread) {
  for (int launch = 0; launch < 20; ++launch) {
    const Tensor right = zeros(kGroups);
    int64_t* to = right.data_as<int64_t>();
    EXPECT_EQ(failure([=] TT_DEVICE(Group & group) {
                bool good = true;
                for (int64_t round = 0; round < 3; ++round) {  // a round must not change values that threads still read
                  const int64_t own = group.rank() + round, n = group.size();
                  const FourWords all = group.reduce(FourWords{own, own, own, 1}, Join());
                  good &= all.sum == n * (n - 1) / 2 + n * round && all.most == n - 1 + round && all.least == round;
                  good &= all.count == n && group.reduce(group.rank() == 0 ? 1.5f : 0.0f, Add()) == 1.5f;
                }
                atomic_add(to + group.index(), int64_t{good ? 0 : 1});
              }),
              "");
    EXPECT_EQ(values(right), std::vector<int64_t>(kGroups, 0));
  }
}

// Threads combine values in pairs, as in a warp, so a non-commutative operation gives different results per thread.
TEST_F(GroupSyncTest, NoncommutativeReductionDiffersBetweenThreads) {
  bool differs = false;
  for (int launch = 0; launch < 20; ++launch) {
    const Tensor sums = zeros(kGroups);
    int64_t* sum = sums.data_as<int64_t>();
    EXPECT_EQ(failure([=] TT_DEVICE(Group & group) {
                const auto first = [](int a, int) { return a; };
                atomic_add(sum + group.index(), static_cast<int64_t>(group.reduce(group.rank(), first)));
              }),
              "");
    const std::vector<int64_t> all = values(sums);
    differs |= all[0] != 0;
  }
  EXPECT_TRUE(differs);
}

// The last thread of a group sums all slots: wrong unless each thread writes its slot before it counts itself.
struct LastOne {
  int64_t *slots, *counts, *sums;
  bool writes_first;

  TT_DEVICE void operator()(Group& group) const {
    int64_t* own = slots + group.index() * kMaxThreads;
    if (writes_first) own[group.rank()] = 1;
    const bool last = atomic_next(counts + group.index()) == group.size() - 1;
    if (!writes_first) own[group.rank()] = 1;
    if (!last) return;
    int64_t sum = 0;
    for (int i = 0; i < group.size(); ++i) sum += own[i];
    sums[group.index()] = sum - group.size();
  }
};

TEST_F(GroupSyncTest, SignalBeforeWriteGivesWrongValue) {
  for (const bool writes_first : {true, false}) {
    const Tensor slots = zeros(kGroups * kMaxThreads), counts = zeros(kGroups), sums = zeros(kGroups);
    EXPECT_EQ(
        failure(LastOne{slots.data_as<int64_t>(), counts.data_as<int64_t>(), sums.data_as<int64_t>(), writes_first}),
        "");
    EXPECT_EQ(values(sums) == std::vector<int64_t>(kGroups, 0), writes_first);
  }
}

TEST_F(GroupSyncTest, SharedMemoryIsPerGroupAndUninitialized) {
  struct Share {
    int64_t* stale;
    TT_DEVICE void operator()(Group& group, std::byte* memory) const {
      auto* own = reinterpret_cast<int64_t*>(memory);
      if (group.rank() == 0) {
        stale[group.index()] = own[0] == group.index() - 1 || own[0] == group.index() + 1;
        own[0] = group.index();
      }
      group.sync();
      if (own[0] != group.index()) stale[group.index()] = 1;
    }
  };
  const Tensor stale = zeros(kGroups);
  for_each_shared_group<64>(Queue(engine_.gpu()), kGroups, 1, Share{stale.data_as<int64_t>()});
  EXPECT_EQ(values(stale), std::vector<int64_t>(kGroups, 0));
}

TEST_F(GroupsTest, IndicesRunOnceInRandomOrder) {
  for (const int64_t n : {1, 2, 7, 8, 9, 100}) {
    int in_order = 0, backwards = 0;
    for (int launch = 0; launch < 20; ++launch) {
      const Tensor seen = zeros(n), next = zeros(1);
      int64_t *to = seen.data_as<int64_t>(), *count = next.data_as<int64_t>();
      for_each(Queue(engine_.gpu()), n, [=] TT_DEVICE(int64_t i) { to[i] += ++*count; });
      std::vector<int64_t> order = values(seen);
      in_order += std::is_sorted(order.begin(), order.end());
      backwards += std::is_sorted(order.rbegin(), order.rend());
      std::sort(order.begin(), order.end());
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(order[i], i + 1);
    }
    if (n > 1) {
      EXPECT_LT(in_order, 20) << n;
      EXPECT_LT(backwards, 20) << n;
    }
  }
}

TEST_F(GroupsTest, EqualSeedsGiveEqualOrders) {
  const auto orders = [&](uint64_t seed) {
    set_simulated_seed(seed);
    const Tensor seen = zeros(kGroups * 8), next = zeros(1);
    int64_t *to = seen.data_as<int64_t>(), *count = next.data_as<int64_t>();
    EXPECT_EQ(failure([=] TT_DEVICE(Group & group) { to[group.index() * 8 + group.rank()] = ++*count; }), "");
    return values(seen);
  };
  EXPECT_EQ(orders(5), orders(5));
  EXPECT_NE(orders(5), orders(6));
}

}  // namespace
}  // namespace tt::cuda
