// Store: the same behaviour in one process (MemoryStore) and over a connection (RemoteStore); limits, tokens, servers
// that start late or stop, and memberships.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "distributed/store/limits.h"
#include "distributed/store/memory_store.h"
#include "distributed/store/remote_store.h"
#include "distributed/store/store_server.h"
#include "distributed/store/wire.h"

namespace tt::distributed {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kToken[] = "a token for tests";
constexpr milliseconds kSoon{50};                        // a timeout that expires
constexpr milliseconds kLong = std::chrono::minutes(2);  // a timeout that does not
using Strings = std::vector<std::string>;

std::string address(const StoreServer& server) { return absl::StrCat("127.0.0.1:", server.port()); }

std::unique_ptr<StoreServer> start(const std::string& where = "127.0.0.1:0") {
  absl::StatusOr<std::unique_ptr<StoreServer>> server = StoreServer::start(where, kToken);
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

std::unique_ptr<RemoteStore> connect(const std::string& where) {
  absl::StatusOr<std::unique_ptr<RemoteStore>> store = RemoteStore::connect(where, kToken, kLong);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// The calls of one MemberLeft.
class Departures {
 public:
  MemberLeft callback() {
    return [this](int rank, const std::string& reason) {
      MutexLock lock(mutex_);
      ++calls_;
      reasons_[rank] = reason;
      changed_.notify_all();
    };
  }
  // Waits until this number of members has left, and returns their reasons.
  std::map<int, std::string> wait(size_t count) {
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return reasons_.size() >= count; });
    return reasons_;
  }
  size_t calls() {
    MutexLock lock(mutex_);
    return calls_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<int, std::string> reasons_ ABSL_GUARDED_BY(mutex_);
  size_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The parameter is whether the store is remote.
class StoreTest : public testing::TestWithParam<bool> {
 protected:
  StoreTest() {
    if (!GetParam()) return;
    server_ = start();
    remote_ = connect(address(*server_));
  }
  Store& store() { return GetParam() ? static_cast<Store&>(*remote_) : memory_; }
  std::string value(const std::string& key) {
    absl::StatusOr<Strings> values = store().get({key}, kSoon);
    return values.ok() ? values->at(0) : std::string(values.status().message());
  }
  std::unique_ptr<Membership> join(const std::string& group, int rank, Departures& departures) {
    absl::StatusOr<std::unique_ptr<Membership>> membership = store().join(group, rank, departures.callback());
    EXPECT_TRUE(membership.ok()) << membership.status();
    return membership.ok() ? *std::move(membership) : nullptr;
  }

  MemoryStore memory_;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<RemoteStore> remote_;
};

INSTANTIATE_TEST_SUITE_P(All, StoreTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Remote" : "Memory"; });

TEST_P(StoreTest, SetsAndGetsValues) {
  const std::string binary("\0\xff\n", 3);
  ASSERT_TRUE(store().set({"a", "b", ""}, {"1", binary, "no key"}).ok());
  EXPECT_THAT(*store().get({"b", "a", "", "b"}, kSoon), ElementsAre(binary, "1", "no key", binary));
  ASSERT_TRUE(store().set({"a"}, {""}).ok());
  EXPECT_EQ(value("a"), "");
  EXPECT_EQ(*store().size(), 3);
  EXPECT_TRUE(store().set({}, {}).ok());
  EXPECT_THAT(*store().get({}, kSoon), ElementsAre());
  EXPECT_TRUE(store().wait({}, kSoon).ok());
}

TEST_P(StoreTest, ChecksAndErases) {
  ASSERT_TRUE(store().set({"a", "b"}, {"1", "2"}).ok());
  EXPECT_TRUE(*store().check({"a", "b"}));
  EXPECT_FALSE(*store().check({"a", "c"}));
  EXPECT_TRUE(*store().check({}));
  EXPECT_TRUE(*store().erase("a"));
  EXPECT_FALSE(*store().erase("a"));
  EXPECT_EQ(*store().size(), 1);
}

TEST_P(StoreTest, NamesMissingKeysWhenATimeoutExpires) {
  ASSERT_TRUE(store().set({"here"}, {"1"}).ok());
  const absl::Status one = store().get({"here", "absent"}, kSoon).status();
  EXPECT_EQ(one.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(one.message()), HasSubstr("after 50 ms waiting for the key 'absent'"));
  EXPECT_THAT(std::string(one.message()), Not(HasSubstr("here")));
  Strings many;
  for (int i = 0; i < 100; ++i) many.push_back(absl::StrCat("key ", i, "\n", std::string(1000, 'x')));
  const absl::Status status = store().wait(many, milliseconds(0));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'key 0\\n"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("and 92 more"));
}

TEST_P(StoreTest, WaitsForKeys) {
  absl::StatusOr<Strings> got;
  std::thread reader([&] { got = store().get({"a", "b", "c"}, kLong); });
  ASSERT_TRUE(store().set({"c"}, {"3"}).ok());
  ASSERT_TRUE(store().set({"a"}, {"1"}).ok());
  ASSERT_EQ(*store().add("b", 2), 2);
  reader.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(*got, ElementsAre("1", "2", "3"));
}

TEST_P(StoreTest, WakesWaitersOfEveryOperationThatCreatesAKey) {
  std::vector<std::thread> waiters;
  std::atomic<int> woken{0};
  for (const char* key : {"set", "add", "append", "compare_set"}) {
    waiters.emplace_back([&, key] { woken += store().wait({key}, kLong).ok(); });
  }
  ASSERT_TRUE(store().set({"set"}, {""}).ok());
  ASSERT_TRUE(store().add("add", 0).ok());
  ASSERT_TRUE(store().append("append", "").ok());
  ASSERT_TRUE(store().compare_set("compare_set", "", "x").ok());
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(woken, 4);
}

TEST_P(StoreTest, WaitersOfFiftyThreadsReceiveAllValues) {
  constexpr int kThreads = 50;
  Strings keys;
  for (int i = 0; i < kThreads; ++i) keys.push_back(absl::StrCat("rank", i));
  std::atomic<int> complete{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kThreads; ++rank) {
    threads.emplace_back([&, rank] {
      ASSERT_TRUE(store().set({keys[rank]}, {absl::StrCat("address", rank)}).ok());
      absl::StatusOr<Strings> all = store().get(keys, kLong);
      ASSERT_TRUE(all.ok()) << all.status();
      ASSERT_EQ(all->size(), kThreads);
      for (int i = 0; i < kThreads; ++i) ASSERT_EQ(all->at(i), absl::StrCat("address", i));
      if (*store().add("arrived", 1) == kThreads) {
        ASSERT_TRUE(store().set({"go"}, {"1"}).ok());
      }
      ASSERT_TRUE(store().wait({"go"}, kLong).ok());
      ++complete;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(complete, kThreads);
}

TEST_P(StoreTest, AddsToDecimalIntegers) {
  EXPECT_EQ(*store().add("n", 5), 5);
  EXPECT_EQ(*store().add("n", -7), -2);
  EXPECT_EQ(value("n"), "-2");
  ASSERT_TRUE(store().set({"n"}, {"40"}).ok());
  EXPECT_EQ(*store().add("n", 2), 42);
  for (const char* text : {"", "x", "1.5", "9223372036854775808"}) {
    ASSERT_TRUE(store().set({"text"}, {text}).ok());
    EXPECT_EQ(store().add("text", 1).status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(value("text"), text);
  }
}

TEST_P(StoreTest, RefusesSumsBeyond64Bits) {
  ASSERT_TRUE(store().add("n", INT64_MAX).ok());
  EXPECT_EQ(store().add("n", 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(value("n"), "9223372036854775807");
  EXPECT_EQ(*store().add("n", INT64_MIN), -1);
  EXPECT_EQ(store().add("n", INT64_MIN).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(StoreTest, Appends) {
  ASSERT_TRUE(store().append("a", "x").ok());
  ASSERT_TRUE(store().append("a", "").ok());
  ASSERT_TRUE(store().append("a", "yz").ok());
  EXPECT_EQ(value("a"), "xyz");
}

TEST_P(StoreTest, ComparesAndSets) {
  EXPECT_EQ(*store().compare_set("k", "old", "new"), "old");  // the key does not exist
  EXPECT_FALSE(*store().check({"k"}));
  EXPECT_EQ(*store().compare_set("k", "", "first"), "first");
  EXPECT_EQ(*store().compare_set("k", "other", "second"), "first");
  EXPECT_EQ(*store().compare_set("k", "", "second"), "first");
  EXPECT_EQ(*store().compare_set("k", "first", "second"), "second");
  EXPECT_EQ(value("k"), "second");
}

TEST_P(StoreTest, EnforcesTheLimitsOfACall) {
  const std::string key(kMaxKeyBytes, 'k'), value(kMaxValueBytes, 'v');
  ASSERT_TRUE(store().set({key}, {value}).ok());
  EXPECT_EQ(store().get({key}, kSoon)->at(0), value);
  EXPECT_EQ(*store().compare_set(key, value, value), value);
  const auto code = [](const auto& result) {
    if constexpr (std::is_same_v<std::decay_t<decltype(result)>, absl::Status>)
      return result.code();
    else
      return result.status().code();
  };
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  const Strings too_many(kMaxKeysPerCall + 1, "k");
  EXPECT_EQ(code(store().set({key + "k"}, {""})), kInvalid);
  EXPECT_EQ(code(store().set({"a"}, {value + "v"})), kInvalid);
  EXPECT_EQ(code(store().set({"a", "b"}, {"1"})), kInvalid);
  EXPECT_EQ(code(store().set(too_many, too_many)), kInvalid);
  EXPECT_EQ(code(store().get(too_many, kSoon)), kInvalid);
  EXPECT_EQ(code(store().wait({key + "k"}, kSoon)), kInvalid);
  EXPECT_EQ(code(store().check(too_many)), kInvalid);
  EXPECT_EQ(code(store().add(key + "k", 1)), kInvalid);
  EXPECT_EQ(code(store().append(key, "v")), kInvalid);  // the value would become too long
  EXPECT_EQ(code(store().compare_set("a", value + "v", "")), kInvalid);
  EXPECT_EQ(code(store().erase(key + "k")), kInvalid);
  EXPECT_EQ(code(store().join("g", -1, nullptr)), kInvalid);
  EXPECT_EQ(code(store().join("g", kMaxRank + 1, nullptr)), kInvalid);
  EXPECT_EQ(code(store().join(std::string(kMaxGroupBytes + 1, 'g'), 0, nullptr)), kInvalid);
}

TEST_P(StoreTest, EnforcesTheTotalLimit) {
  const std::string value(kMaxValueBytes, 'v');
  Strings keys;
  absl::Status status;
  while (status.ok()) {
    keys.push_back(absl::StrCat(keys.size()));
    status = store().set({keys.back()}, {value});
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(keys.size(), kMaxTotalBytes / kMaxValueBytes);
  EXPECT_FALSE(*store().check({keys.back()}));
  // A replaced value has room, and so has a new one after an erased one.
  EXPECT_TRUE(store().set({keys[0]}, {value}).ok());
  EXPECT_TRUE(*store().erase(keys[0]));
  EXPECT_TRUE(store().set({keys.back()}, {value}).ok());
  keys.erase(keys.begin());
  EXPECT_EQ(store().get(keys, kSoon)->size(), keys.size());  // more than one message
}

TEST_P(StoreTest, GetsAndSetsTheMaximumNumberOfKeys) {
  Strings keys, values;
  for (size_t i = 0; i < kMaxKeysPerCall; ++i) {
    keys.push_back(absl::StrCat(std::string(200, 'k'), i));
    values.push_back(absl::StrCat(i));
  }
  absl::StatusOr<Strings> got;
  std::thread reader([&] { got = store().get(keys, kLong); });
  ASSERT_TRUE(store().set(keys, values).ok());
  reader.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, values);
  EXPECT_TRUE(*store().check(keys));
}

TEST_P(StoreTest, ReportsMembersThatLeave) {
  Departures first, second, other;
  std::unique_ptr<Membership> a = join("g", 0, first), b = join("g", 1, second), c = join("other", 1, other);
  b->leave("it is tired");
  b->leave("a second reason");
  EXPECT_EQ(first.wait(1), (std::map<int, std::string>{{1, "it is tired"}}));
  b.reset();
  Departures third;
  std::unique_ptr<Membership> d = join("g", 2, third);
  EXPECT_EQ(third.wait(1), (std::map<int, std::string>{{1, "it is tired"}}));  // left before
  d.reset();
  EXPECT_EQ(first.wait(2).at(2), "it left the group");
  a.reset();
  c.reset();
  EXPECT_EQ(first.calls(), 2u);
  EXPECT_EQ(second.calls(), 0u);
  EXPECT_EQ(third.calls(), 1u);
  EXPECT_EQ(other.calls(), 0u);
}

TEST_P(StoreTest, ARankJoinsAGroupOnce) {
  Departures departures;
  std::unique_ptr<Membership> member = join("g", 0, departures);
  EXPECT_EQ(store().join("g", 0, departures.callback()).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(join("h", 0, departures), nullptr);
  member.reset();
  EXPECT_EQ(store().join("g", 0, departures.callback()).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(departures.calls(), 0u);
}

TEST_P(StoreTest, ShortensReasons) {
  Departures departures;
  std::unique_ptr<Membership> a = join("g", 0, departures), b = join("g", 1, departures);
  b->leave(std::string(100'000, 'r'));
  EXPECT_EQ(departures.wait(1).at(1), std::string(kMaxReasonBytes, 'r'));
}

TEST_P(StoreTest, ManyMembersSeeEachOtherLeave) {
  constexpr int kMembers = 200;
  std::vector<std::unique_ptr<Departures>> departures;
  std::vector<std::unique_ptr<Membership>> members;
  for (int rank = 0; rank < kMembers; ++rank) {
    departures.push_back(std::make_unique<Departures>());
    members.push_back(join("g", rank, *departures.back()));
    ASSERT_NE(members.back(), nullptr);
  }
  for (int rank = 0; rank < kMembers; rank += 2) members[rank]->leave(absl::StrCat("reason ", rank));
  for (int rank = 1; rank < kMembers; rank += 2) {
    const std::map<int, std::string> left = departures[rank]->wait(kMembers / 2);
    for (int other = 0; other < kMembers; other += 2) EXPECT_EQ(left.at(other), absl::StrCat("reason ", other));
  }
  std::vector<std::thread> threads;  // the rest leaves at once
  for (int rank = 1; rank < kMembers; rank += 2) threads.emplace_back([&, rank] { members[rank].reset(); });
  for (std::thread& thread : threads) thread.join();
  for (int rank = 1; rank < kMembers; rank += 2) EXPECT_LT(departures[rank]->calls(), kMembers);
}

TEST(MemoryStoreTest, RemembersMembersOfOldGroupsOnlyUpToALimit) {
  MemoryStore store;
  Departures departures;
  std::unique_ptr<Membership> lasting = *store.join("lasting", 0, departures.callback());
  for (size_t i = 0; i < kMaxMembers + 10; ++i) {
    ASSERT_TRUE(store.join(absl::StrCat("g", i), 0, departures.callback()).ok());
  }
  EXPECT_TRUE(store.join("g0", 0, departures.callback()).ok());  // forgotten
  EXPECT_EQ(store.join("lasting", 0, departures.callback()).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(MemoryStoreTest, ChargesItsOwner) {
  int64_t held = 0;
  {
    MemoryStore store([&held](int64_t bytes) {
      if (held + bytes > 10'000) return false;
      held += bytes;
      return true;
    });
    const std::string value(4'000, 'x'), key = "a", other = "b", third = "c";
    ASSERT_TRUE(store.set({&key, 1}, {&value, 1}).ok());
    ASSERT_TRUE(store.set({&other, 1}, {&value, 1}).ok());
    EXPECT_GE(held, 8'000);
    const absl::Status refused = store.set({&third, 1}, {&value, 1});
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(refused.message(), HasSubstr("memory limit of the session that serves the store"));
    EXPECT_FALSE(*store.check({&third, 1}));
    ASSERT_TRUE(*store.erase(other));
    EXPECT_LT(held, 5'000);
    const int64_t before = held;
    const uint64_t wait = store.async_get({third}, std::chrono::milliseconds(60'000), 0, [](MemoryStore::Values) {});
    EXPECT_GT(held, before);
    EXPECT_TRUE(store.cancel(wait));
    EXPECT_EQ(held, before);
    ASSERT_TRUE(store.set({&third, 1}, {&value, 1}).ok());
  }
  EXPECT_EQ(held, 0);
}

TEST(MemoryStoreTest, LimitsTheNumberOfMembers) {
  MemoryStore store;
  std::vector<std::unique_ptr<Membership>> members;
  const MemberLeft ignore = [](int, const std::string&) {};
  for (size_t i = 0; i < kMaxMembers; ++i) {
    members.push_back(*store.join(absl::StrCat(i / 1024), static_cast<int>(i % 1024), ignore));
  }
  EXPECT_EQ(store.join("h", 0, ignore).status().code(), absl::StatusCode::kResourceExhausted);
  store.close("the test ends");  // otherwise each departure is reported to all others
}

TEST(MemoryStoreTest, CloseEndsWaitsAndMemberships) {
  MemoryStore store;
  Departures departures;
  std::unique_ptr<Membership> member = *store.join("g", 0, departures.callback());
  absl::Status waited;
  std::thread waiter([&] { waited = store.wait({"a"}, kLong); });
  while (store.async_get({"b"}, milliseconds(1), 0, [](MemoryStore::Values) {}) < 2) std::this_thread::yield();
  store.close("the engine stops");
  waiter.join();
  EXPECT_EQ(waited.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(departures.wait(1).at(-1), "[store] the engine stops");
  EXPECT_EQ(store.set({"a"}, {"1"}).code(), absl::StatusCode::kUnavailable);
}

TEST(MemoryStoreTest, CancelsAsynchronousGets) {
  MemoryStore store;
  const uint64_t id = store.async_get({"a"}, kLong, 1, [](MemoryStore::Values) { FAIL(); });
  EXPECT_TRUE(store.cancel(id));
  EXPECT_FALSE(store.cancel(id));
  EXPECT_TRUE(store.set({"a"}, {"1"}).ok());
  EXPECT_FALSE(store.cancel(0));
}

TEST(StoreServerTest, RefusesOtherTokens) {
  std::unique_ptr<StoreServer> server = start();
  for (const char* token : {"another token", "a token for tests ", "a token for test"}) {
    EXPECT_EQ(RemoteStore::connect(address(*server), token, kLong).status().code(), absl::StatusCode::kUnauthenticated);
  }
  EXPECT_EQ(RemoteStore::connect(address(*server), "", kLong).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RemoteStore::connect(address(*server), "a\nb", kLong).status().code(), absl::StatusCode::kInvalidArgument);
  auto stub = v1::Store::NewStub(grpc::CreateChannel(address(*server), grpc::InsecureChannelCredentials()));
  grpc::ClientContext call_context, join_context;
  v1::StoreReply reply;
  EXPECT_EQ(stub->Call(&call_context, v1::StoreRequest(), &reply).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  auto stream = stub->Join(&join_context);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST(StoreServerTest, RefusesInvalidAddresses) {
  for (const char* where :
       {"", "7070", ":7070", "localhost", "localhost:", "localhost:x", "localhost:70000", "a/b:1"}) {
    EXPECT_EQ(StoreServer::start(where, kToken).status().code(), absl::StatusCode::kInvalidArgument) << where;
    EXPECT_EQ(RemoteStore::connect(where, kToken, kSoon).status().code(), absl::StatusCode::kInvalidArgument) << where;
  }
  EXPECT_EQ(StoreServer::start("127.0.0.1:0", "").status().code(), absl::StatusCode::kInvalidArgument);
  std::unique_ptr<StoreServer> server = start();
  EXPECT_EQ(StoreServer::start(address(*server), kToken).status().code(), absl::StatusCode::kUnavailable);
}

// A client that checks no limits.
class RawClient {
 public:
  explicit RawClient(const StoreServer& server)
      : stub_(v1::Store::NewStub(grpc::CreateChannel(address(server), grpc::InsecureChannelCredentials()))) {}
  static void authorize(grpc::ClientContext* context) {
    context->AddMetadata("authorization", absl::StrCat("Bearer ", kToken));
  }
  grpc::StatusCode call(const v1::StoreRequest& request) {
    grpc::ClientContext context;
    authorize(&context);
    v1::StoreReply reply;
    return stub_->Call(&context, request, &reply).error_code();
  }
  grpc::StatusCode join(const v1::JoinRequest& request) {
    grpc::ClientContext context;
    authorize(&context);
    auto stream = stub_->Join(&context);
    stream->Write(request);
    v1::JoinEvent event;
    while (stream->Read(&event)) stream->WritesDone();
    return stream->Finish().error_code();
  }
  v1::Store::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<v1::Store::Stub> stub_;
};

TEST(StoreServerTest, RefusesHostileRequests) {
  std::unique_ptr<StoreServer> server = start();
  RawClient client(*server);
  const std::string long_key(kMaxKeyBytes + 1, 'k');
  v1::StoreRequest request;
  EXPECT_EQ(client.call(request), grpc::StatusCode::INVALID_ARGUMENT);  // no operation
  request.mutable_set()->add_keys("a");
  EXPECT_EQ(client.call(request), grpc::StatusCode::INVALID_ARGUMENT);  // no value
  request.mutable_add()->set_key(long_key);
  EXPECT_EQ(client.call(request), grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_get()->add_keys("a");
  request.mutable_get()->add_keys(long_key);
  request.mutable_get()->set_timeout_milliseconds(UINT64_MAX);
  EXPECT_EQ(client.call(request), grpc::StatusCode::INVALID_ARGUMENT);
  for (size_t i = 0; i <= kMaxKeysPerCall; ++i) request.mutable_check()->add_keys("");
  EXPECT_EQ(client.call(request), grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_append()->set_value(std::string(kMaxValueBytes + 1, 'v'));
  EXPECT_EQ(client.call(request), grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_append()->set_value(std::string(kMaxMessageBytes, 'v'));
  EXPECT_EQ(client.call(request), grpc::StatusCode::RESOURCE_EXHAUSTED);
  request.mutable_size();
  request.set_store_id(1);
  EXPECT_EQ(client.call(request), grpc::StatusCode::FAILED_PRECONDITION);

  v1::JoinRequest join;
  EXPECT_EQ(client.join(join), grpc::StatusCode::INVALID_ARGUMENT);  // nothing to join
  join.mutable_leave()->set_reason("first");
  EXPECT_EQ(client.join(join), grpc::StatusCode::INVALID_ARGUMENT);
  join.mutable_join()->set_rank(UINT32_MAX);
  EXPECT_EQ(client.join(join), grpc::StatusCode::INVALID_ARGUMENT);
  join.mutable_join()->set_rank(7);
  EXPECT_EQ(client.join(join), grpc::StatusCode::OK);

  auto channel = grpc::CreateChannel(address(*server), grpc::InsecureChannelCredentials());
  grpc::GenericStub generic(channel);
  grpc::CompletionQueue queue;
  for (const char* method : {"/teletensor.v1.Store/Call", "/teletensor.v1.Store/Join", "/teletensor.v1.Store/Other"}) {
    grpc::ClientContext context;
    RawClient::authorize(&context);
    const grpc::Slice slice("\xff\xff\xff");
    const grpc::ByteBuffer bytes(&slice, 1);
    auto call = generic.PrepareUnaryCall(&context, method, bytes, &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    void* tag;
    bool ok;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(status.error_code(), absl::string_view(method).find("Other") == absl::string_view::npos
                                       ? grpc::StatusCode::INVALID_ARGUMENT
                                       : grpc::StatusCode::UNIMPLEMENTED);
  }
  EXPECT_EQ(*server->store().size(), 0);
}

TEST(StoreServerTest, DropsTheWaitOfACancelledCall) {
  std::unique_ptr<StoreServer> server = start();
  RawClient client(*server);
  // Keys of waiting calls have a limit; 20 times as many calls as it has room for succeed if cancelled calls release
  // it.
  v1::StoreRequest request;
  for (int i = 0; i < 2000; ++i) request.mutable_get()->add_keys(std::string(kMaxKeyBytes, 'k'));
  request.mutable_get()->set_timeout_milliseconds(3'600'000);
  for (int i = 0; i < 100; ++i) {
    grpc::ClientContext context;
    RawClient::authorize(&context);
    context.set_deadline(std::chrono::system_clock::now() + milliseconds(20));
    v1::StoreReply reply;
    ASSERT_EQ(client.stub().Call(&context, request, &reply).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
}

TEST(RemoteStoreTest, ConnectsToAServerThatStartsLate) {
  const std::string where = address(*start());  // a port that is free again
  absl::StatusOr<std::unique_ptr<RemoteStore>> store;
  std::thread client([&] { store = RemoteStore::connect(where, kToken, kLong); });
  std::this_thread::sleep_for(milliseconds(300));
  std::unique_ptr<StoreServer> server = start(where);
  client.join();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->set({"a"}, {"1"}).ok());
}

TEST(RemoteStoreTest, ReportsAServerThatDoesNotStart) {
  const std::string where = address(*start());
  const absl::Status status = RemoteStore::connect(where, kToken, milliseconds(300)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(where, " cannot be reached within 300 ms")));
}

TEST(RemoteStoreTest, AServerThatStopsEndsCallsAndMemberships) {
  std::unique_ptr<StoreServer> server = start();
  const std::string where = address(*server);
  std::unique_ptr<RemoteStore> store = connect(where);
  Departures departures;
  std::unique_ptr<Membership> member = *store->join("g", 0, departures.callback());
  absl::Status waited;
  std::thread waiter([&] { waited = store->wait({"never"}, kLong); });
  server.reset();
  waiter.join();
  EXPECT_EQ(waited.code(), absl::StatusCode::kUnavailable) << waited;
  EXPECT_EQ(departures.wait(1).count(-1), 1u);
  EXPECT_EQ(store->set({"a"}, {"1"}).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(store->join("g", 1, departures.callback()).ok());

  // Another store at the same address is not mistaken for the first one.
  server = start(where);
  std::unique_ptr<RemoteStore> next = connect(where);
  EXPECT_TRUE(next->set({"a"}, {"1"}).ok());
  EXPECT_EQ(store->get({"a"}, kLong).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store->join("g", 2, departures.callback()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(departures.calls(), 1u);
}

TEST(RemoteStoreTest, MembershipsOutliveTheStore) {
  std::unique_ptr<StoreServer> server = start();
  Departures first, second;
  std::unique_ptr<RemoteStore> store = connect(address(*server));
  std::unique_ptr<Membership> a = *store->join("g", 0, first.callback()), b = *store->join("g", 1, second.callback());
  store.reset();
  b.reset();
  EXPECT_EQ(first.wait(1).at(1), "it left the group");
}

TEST(RemoteStoreTest, InterruptsWaits) {
  std::unique_ptr<StoreServer> server = start();
  std::atomic<bool> interrupt{false};
  const auto interrupted = [&] { return interrupt.load(); };
  std::unique_ptr<RemoteStore> store = *RemoteStore::connect(address(*server), kToken, kLong, interrupted);
  EXPECT_TRUE(store->set({"a"}, {"1"}).ok());
  interrupt = true;
  EXPECT_EQ(store->wait({"b"}, kLong).code(), absl::StatusCode::kCancelled);
  interrupt = false;
  EXPECT_EQ(store->get({"a"}, kLong)->at(0), "1");
  interrupt = true;
  EXPECT_EQ(RemoteStore::connect("127.0.0.1:1", kToken, kLong, interrupted).status().code(),
            absl::StatusCode::kCancelled);
}

// The test runs itself as a member in a separate process (main() below).
class Process {
 public:
  Process(const std::string& where, int rank) {
    const std::string rank_text = absl::StrCat(rank);
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execl("/proc/self/exe", "member", "--member", where.c_str(), rank_text.c_str(), nullptr);
      _exit(127);
    }
  }
  ~Process() { end(SIGKILL); }
  void stop() { kill(process_, SIGSTOP); }
  void end(int signal) {
    if (process_ <= 0) return;
    kill(process_, signal);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_;
};

TEST(RemoteStoreTest, ReportsMembersWhoseProcessIsKilled) {
  std::unique_ptr<StoreServer> server = start();
  std::unique_ptr<RemoteStore> store = connect(address(*server));
  Departures departures;
  std::unique_ptr<Membership> member = *store->join("g", 0, departures.callback());
  Process one(address(*server), 1), two(address(*server), 2);
  ASSERT_TRUE(store->wait({"joined1", "joined2"}, kLong).ok());
  one.end(SIGKILL);
  EXPECT_EQ(departures.wait(1), (std::map<int, std::string>{{1, "its connection to the store was lost"}}));
  two.end(SIGKILL);
  EXPECT_EQ(departures.wait(2).at(2), "its connection to the store was lost");
}

// The process keeps its connection but does not answer, as if its host had been switched off.
TEST(RemoteStoreTest, ReportsMembersThatFallSilent) {
  std::unique_ptr<StoreServer> server = start();
  std::unique_ptr<RemoteStore> store = connect(address(*server));
  Departures departures;
  std::unique_ptr<Membership> member = *store->join("g", 0, departures.callback());
  Process one(address(*server), 1);
  ASSERT_TRUE(store->wait({"joined1"}, kLong).ok());
  absl::Status waited;
  std::thread waiter([&] { waited = store->wait({"late"}, kLong); });  // survives longer than the keepalive's timeout
  one.stop();
  EXPECT_EQ(departures.wait(1), (std::map<int, std::string>{{1, "its connection to the store was lost"}}));
  ASSERT_TRUE(store->set({"late"}, {""}).ok());
  waiter.join();
  EXPECT_TRUE(waited.ok()) << waited;
}

int run_member(const std::string& where, int rank) {
  std::unique_ptr<RemoteStore> store = connect(where);
  absl::StatusOr<std::unique_ptr<Membership>> member = store->join("g", rank, [](int, const std::string&) {});
  if (!member.ok() || !store->set({absl::StrCat("joined", rank)}, {""}).ok()) return 1;
  pause();
  return 0;
}

}  // namespace
}  // namespace tt::distributed

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--member") return tt::distributed::run_member(argv[2], std::atoi(argv[3]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
