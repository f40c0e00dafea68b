// ShmBackend with ranks as threads of this process and as processes.
#include "distributed/shm/shm_backend.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "distributed/group/reduce.h"
#include "engine/schema/error.h"
#include "engine/schema/half.h"
#include "gmock/gmock.h"

namespace tt::distributed {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<char>;
using Group = std::vector<std::unique_ptr<ShmBackend>>;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kLong{120'000};  // never reached by a correct backend

Group make_group(int size, Milliseconds timeout = kLong) {
  Group group;
  auto created = ShmBackend::create(size, timeout);
  EXPECT_TRUE(created.ok()) << created.status();
  group.push_back(std::move(created->backend));
  for (int rank = 1; rank < size; ++rank) {
    auto opened = ShmBackend::open(created->name, rank, size, timeout);
    EXPECT_TRUE(opened.ok()) << opened.status();
    group.push_back(*std::move(opened));
  }
  return group;
}

void on_threads(const Group& group, const std::function<void(int rank, ShmBackend& backend)>& body) {
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] { body(static_cast<int>(rank), *group[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Forks a child per rank, which runs `body`; returns the exit statuses. The name is passed through a pipe.
std::vector<int> on_processes(int size, Milliseconds timeout,
                              const std::function<bool(int rank, ShmBackend& backend)>& body) {
  std::vector<pid_t> children;
  int names[2];
  EXPECT_EQ(pipe(names), 0);
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      std::unique_ptr<ShmBackend> backend;
      char name[64] = {};
      if (rank == 0) {
        auto created = ShmBackend::create(size, timeout);
        if (!created.ok()) _exit(2);
        created->name.copy(name, sizeof name - 1);
        for (int peer = 1; peer < size; ++peer) {
          if (write(names[1], name, sizeof name) != sizeof name) _exit(3);
        }
        backend = std::move(created->backend);
      } else {
        if (read(names[0], name, sizeof name) != sizeof name) _exit(4);
        auto opened = ShmBackend::open(name, rank, size, timeout);
        if (!opened.ok()) _exit(5);
        backend = *std::move(opened);
      }
      bool passed = false;
      try {
        passed = body(rank, *backend);
      } catch (const Error& error) {
        fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      backend = nullptr;
      _exit(passed ? 0 : 1);
    }
    children.push_back(child);
  }
  close(names[0]);
  close(names[1]);
  std::vector<int> statuses;
  for (pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return statuses;
}

// The error of a call that must fail.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

template <typename T>
void append(Bytes& bytes, T value) {
  const auto* raw = reinterpret_cast<const char*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof value);
}

// Items that differ per rank.
Bytes items(DType dtype, size_t count, int rank) {
  Bytes bytes;
  bytes.reserve(count * item_size(dtype));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t n = (i + 1) * 2654435761u * static_cast<uint64_t>(rank + 3) >> 7;
    const float value = static_cast<float>(n % 1000) / 64;
    switch (dtype) {
      case DType::kBool: append<uint8_t>(bytes, n % 2); break;
      case DType::kFloat16: append(bytes, Half(value)); break;
      case DType::kBFloat16: append(bytes, BFloat16(value)); break;
      case DType::kFloat32: append(bytes, value); break;
      case DType::kFloat64: append<double>(bytes, value); break;
      case DType::kComplex128:
        append<double>(bytes, value);
        append<double>(bytes, -value);
        break;
      default:
        for (size_t b = 0; b < item_size(dtype); ++b) append<uint8_t>(bytes, static_cast<uint8_t>(n >> (b * 8)));
    }
  }
  return bytes;
}

// Items that `from` sends to `to` in an all_to_all with uneven messages.
size_t uneven(size_t count, int from, int to) {
  return (from + to) % 3 == 0 ? 0 : count * static_cast<size_t>(from + 1) / 2 + to;
}

// Runs one collective as `rank` and compares its output with the definition. Returns false if they differ.
bool matches(ShmBackend& backend, CollectiveKind kind, DType dtype, size_t count, int rank, int size,
             bool in_place = false) {
  const size_t item = item_size(dtype), piece = count * item, n = static_cast<size_t>(size);
  Collective c;
  c.kind = kind;
  c.dtype = dtype;
  c.count = count;
  c.root = size / 2;
  c.op = dtype == DType::kInt32 ? ReduceOp::kMax : ReduceOp::kSum;
  const bool at_root = rank == c.root;
  const auto reduced = [&](size_t items_per_rank) {
    std::vector<Bytes> all;
    std::vector<const char*> pointers;
    for (int r = 0; r < size; ++r) all.push_back(items(dtype, items_per_rank, r));
    for (const Bytes& bytes : all) pointers.push_back(bytes.data());
    Bytes result(items_per_rank * item);
    reduce(c.op, dtype, result.data(), pointers, items_per_rank);
    return result;
  };
  const auto slice = [](const Bytes& bytes, size_t from, size_t length) {
    return Bytes(bytes.begin() + static_cast<ptrdiff_t>(from), bytes.begin() + static_cast<ptrdiff_t>(from + length));
  };
  Bytes input, expected;
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
      input = items(dtype, count, rank);
      if (kind == CollectiveKind::kAllReduce || at_root) expected = reduced(count);
      break;
    case CollectiveKind::kBroadcast:
      if (at_root) input = items(dtype, count, rank);
      expected = items(dtype, count, c.root);
      break;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kGather:
      input = items(dtype, count, rank);
      for (int r = 0; r < size && (kind == CollectiveKind::kAllGather || at_root); ++r) {
        const Bytes theirs = items(dtype, count, r);
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      break;
    case CollectiveKind::kScatter:
      if (at_root) input = items(dtype, n * count, rank);
      expected = slice(items(dtype, n * count, c.root), static_cast<size_t>(rank) * piece, piece);
      break;
    case CollectiveKind::kReduceScatter:
      input = items(dtype, n * count, rank);
      expected = slice(reduced(n * count), static_cast<size_t>(rank) * piece, piece);
      break;
    case CollectiveKind::kAllToAll:
      for (int r = 0; r < size; ++r) {
        c.send_counts.push_back(uneven(count, rank, r));
        c.receive_counts.push_back(uneven(count, r, rank));
        const Bytes mine = items(dtype, c.send_counts.back(), rank * 100 + r);
        const Bytes theirs = items(dtype, c.receive_counts.back(), r * 100 + rank);
        input.insert(input.end(), mine.begin(), mine.end());
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      break;
    case CollectiveKind::kBarrier: break;
  }
  if (in_place) {
    input.resize(std::max(input.size(), expected.size()));
    c.input = c.output = input.data();
    backend.run(c);
    return expected.empty() || input == expected;
  }
  const Bytes before = input;
  Bytes output(expected.size() + 1, 'x');
  c.input = input.data();
  c.output = output.data();
  backend.run(c);
  const bool inside = output.back() == 'x';
  output.pop_back();
  return inside && output == expected && input == before;
}

constexpr CollectiveKind kKinds[] = {
    CollectiveKind::kAllReduce, CollectiveKind::kReduce,        CollectiveKind::kBroadcast,
    CollectiveKind::kAllGather, CollectiveKind::kGather,        CollectiveKind::kScatter,
    CollectiveKind::kBarrier,   CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll};
constexpr DType kDTypes[] = {DType::kFloat32, DType::kBFloat16, DType::kInt32, DType::kComplex128, DType::kUInt8};

class ShmWorld : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ShmWorld, testing::Values(1, 2, 3, 4, 8));

TEST_P(ShmWorld, CollectivesMatchTheirDefinition) {
  const int size = GetParam();
  const Group group = make_group(size);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    for (CollectiveKind kind : kKinds) {
      for (DType dtype : kDTypes) {
        for (size_t count : {0, 1, 1000, 20'001}) {
          EXPECT_TRUE(matches(backend, kind, dtype, count, rank, size))
              << name(kind) << " " << name(dtype) << " " << count << " rank " << rank;
        }
      }
    }
  });
}

TEST_P(ShmWorld, LargeCollectivesMatchTheirDefinition) {
  const int size = GetParam();
  const size_t megabytes = size <= 4 ? 4 : 2;
  const Group group = make_group(size);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    for (CollectiveKind kind : kKinds) {
      const size_t whole = (megabytes << 20) / 4;
      for (size_t count : {whole, whole / 3 + 12'345}) {
        EXPECT_TRUE(matches(backend, kind, DType::kFloat32, count, rank, size))
            << name(kind) << " " << count << " rank " << rank;
      }
    }
  });
}

TEST_P(ShmWorld, ReductionsAndBroadcastWorkInPlace) {
  const int size = GetParam();
  const Group group = make_group(size);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    for (CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kReduce, CollectiveKind::kBroadcast}) {
      for (size_t count : {1, 1000, 100'003, 1'000'003}) {
        EXPECT_TRUE(matches(backend, kind, DType::kFloat32, count, rank, size, true))
            << name(kind) << " " << count << " rank " << rank;
      }
    }
  });
}

TEST_P(ShmWorld, ExchangeReturnsTheBytesOfAllRanks) {
  const int size = GetParam();
  const Group group = make_group(size);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{24}, Backend::kMaxExchange}) {
      const Bytes mine(bytes, static_cast<char>('a' + rank));
      Bytes all(bytes * static_cast<size_t>(size)), expected;
      for (int r = 0; r < size; ++r) expected.insert(expected.end(), bytes, static_cast<char>('a' + r));
      backend.exchange(mine, absl::MakeSpan(all));
      EXPECT_EQ(all, expected);
    }
  });
}

TEST_P(ShmWorld, ProcessesMatchTheDefinition) {
  const int size = GetParam();
  const std::vector<int> statuses = on_processes(size, kLong, [&](int rank, ShmBackend& backend) {
    bool passed = true;
    for (CollectiveKind kind : kKinds) {
      for (size_t count : {1, 1000, 300'001}) {
        if (!matches(backend, kind, DType::kFloat32, count, rank, size)) {
          fprintf(stderr, "%s %zu rank %d\n", std::string(name(kind)).c_str(), count, rank);
          passed = false;
        }
      }
    }
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      Bytes sent(500'000, static_cast<char>(rank)), received(sent.size());
      if (rank < peer) backend.send(peer, 1, sent);
      backend.receive(peer, 1, absl::MakeSpan(received));
      if (rank > peer) backend.send(peer, 1, sent);
      passed = passed && received == Bytes(sent.size(), static_cast<char>(peer));
    }
    return passed;
  });
  EXPECT_THAT(statuses, testing::Each(0));
}

TEST(Shm, ManySmallCollectivesFollowEachOther) {
  const Group group = make_group(3);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    for (int i = 0; i < 2000; ++i) {
      int64_t value = i * (rank + 1), sum = 0;
      Collective c;
      c.kind = i % 5 == 0 ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
      int64_t values[3] = {value, value, value};
      c.dtype = DType::kInt64;
      c.count = 1;
      c.input = reinterpret_cast<const char*>(values);
      c.output = reinterpret_cast<char*>(&sum);
      backend.run(c);
      ASSERT_EQ(sum, 6 * i);
    }
  });
}

TEST(Shm, MessagesInBothDirectionsDuringCollectives) {
  const int size = 3;
  const Group group = make_group(size);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    std::vector<std::thread> threads;
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      threads.emplace_back([&, peer] {
        for (size_t i = 0; i < 30; ++i) {
          backend.send(peer, 5, items(DType::kUInt8, i % 3 == 0 ? 3'000'000 + i : i, rank * 10 + peer));
        }
      });
      threads.emplace_back([&, peer] {
        for (size_t i = 0; i < 30; ++i) {
          const Bytes expected = items(DType::kUInt8, i % 3 == 0 ? 3'000'000 + i : i, peer * 10 + rank);
          Bytes received(expected.size());
          backend.receive(peer, 5, absl::MakeSpan(received));
          EXPECT_EQ(received, expected);
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(matches(backend, CollectiveKind::kAllReduce, DType::kFloat32, 100'000, rank, size));
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(Shm, MessagesWithOtherTagsAreReceivedInAnyOrder) {
  const Group group = make_group(2);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    const auto message = [](uint32_t tag, size_t index) {
      return items(DType::kUInt8, tag == 2 ? 1'000'000 : 100 * index, static_cast<int>(tag * 10 + index));
    };
    if (rank == 0) {
      for (size_t i = 0; i < 3; ++i) {
        for (uint32_t tag : {1, 2, 3}) backend.send(1, tag, message(tag, i));
      }
    } else {
      for (uint32_t tag : {3, 1, 2}) {
        for (size_t i = 0; i < 3; ++i) {
          const Bytes expected = message(tag, i);
          Bytes received(expected.size());
          backend.receive(0, tag, absl::MakeSpan(received));
          EXPECT_EQ(received, expected) << tag << " " << i;
        }
      }
    }
  });
}

TEST(Shm, TooManyBytesOfOtherTagsAreAnError) {
  const Group group = make_group(2);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    const size_t large = shm::LaneReceiver::kMaxReordered;
    if (rank == 0) {
      backend.send(1, 1, Bytes(large, 'a'));
      backend.send(1, 2, Bytes(1, 'b'));
    } else {
      char byte = 0;
      const std::string error = error_of([&] { backend.receive(0, 2, absl::MakeSpan(&byte, 1)); });
      EXPECT_THAT(error, HasSubstr("more than 64 MiB of messages with other tags"));
      EXPECT_THAT(error, HasSubstr("the next one has tag 1 and 67108864 bytes"));
      Bytes first(large);  // the lane is still usable
      backend.receive(0, 1, absl::MakeSpan(first));
      EXPECT_EQ(first, Bytes(large, 'a'));
      backend.receive(0, 2, absl::MakeSpan(&byte, 1));
      EXPECT_EQ(byte, 'b');
    }
  });
}

TEST(Shm, AMessageOfAnotherSizeIsAnError) {
  const Group group = make_group(2);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    if (rank == 0) {
      backend.send(1, 7, Bytes(300'000, 'a'));
      backend.send(1, 7, Bytes(10, 'b'));
    } else {
      Bytes ten(10);
      EXPECT_THAT(error_of([&] { backend.receive(0, 7, absl::MakeSpan(ten)); }),
                  HasSubstr("receive from rank 0 with tag 7: expected 10 bytes, got a message of 300000"));
      backend.receive(0, 7, absl::MakeSpan(ten));
      EXPECT_EQ(ten, Bytes(10, 'b'));
    }
  });
}

TEST(Shm, AbortEndsACollectiveAndMessages) {
  const Group group = make_group(2);
  std::vector<std::string> errors(3);
  std::thread collective([&] { errors[0] = error_of([&] { group[0]->run({}); }); });
  std::thread receiver([&] {
    char byte;
    errors[1] = error_of([&] { group[0]->receive(1, 0, absl::MakeSpan(&byte, 1)); });
  });
  std::thread sender([&] { errors[2] = error_of([&] { group[0]->send(1, 0, Bytes(4 << 20)); }); });
  std::this_thread::sleep_for(Milliseconds(50));
  group[0]->abort("the session ended");
  group[0]->abort("a later reason");
  for (std::thread* thread : {&collective, &receiver, &sender}) thread->join();
  EXPECT_THAT(errors, testing::Each("the session ended"));
  EXPECT_EQ(error_of([&] { group[0]->run({}); }), "the session ended");
  group[1]->run({});  // rank 0 had arrived
  EXPECT_EQ(error_of([&] { group[1]->run({}); }), "the session ended");
}

TEST(Shm, AMissingRankIsNamed) {
  const Group group = make_group(4, Milliseconds(100));
  std::vector<std::string> errors(4);
  on_threads(group, [&](int rank, ShmBackend& backend) {
    if (rank == 0 || rank == 2) errors[static_cast<size_t>(rank)] = error_of([&] { backend.run({}); });
  });
  EXPECT_EQ(errors[0], "timed out after 100 ms: ranks 1, 3 did not arrive");
  EXPECT_EQ(errors[2], "timed out after 100 ms: ranks 1, 3 did not arrive");
  EXPECT_THAT(error_of([&] { group[1]->run({}); }), HasSubstr("did not arrive"));
  char byte;
  const Group pair = make_group(2, Milliseconds(50));
  EXPECT_EQ(error_of([&] { pair[0]->receive(1, 0, absl::MakeSpan(&byte, 1)); }),
            "timed out after 50 ms: rank 1 did not send");
  EXPECT_EQ(error_of([&] { pair[0]->send(1, 0, Bytes(4 << 20)); }), "timed out after 50 ms: rank 1 did not receive");
  EXPECT_THAT(error_of([&] { pair[0]->send(1, 0, Bytes(1)); }), HasSubstr("interrupted in the middle"));
}

TEST(Shm, ARankThatLeavesIsNamed) {
  Group group = make_group(2);
  group[1]->send(0, 3, Bytes(5, 'm'));
  group[1] = nullptr;
  Bytes message(5);
  group[0]->receive(1, 3, absl::MakeSpan(message));  // sent before it left
  EXPECT_EQ(message, Bytes(5, 'm'));
  EXPECT_EQ(error_of([&] { group[0]->receive(1, 3, absl::MakeSpan(message)); }), "rank 1 left the group");
  EXPECT_EQ(error_of([&] { group[0]->run({}); }), "rank 1 left the group");
}

TEST(Shm, AKilledProcessIsNamed) {
  const std::vector<int> statuses = on_processes(4, kLong, [&](int rank, ShmBackend& backend) {
    if (!matches(backend, CollectiveKind::kAllReduce, DType::kFloat32, 1000, rank, 4)) return false;
    if (rank == 2) raise(SIGKILL);
    return error_of([&] {
             for (int i = 0; i < 3; ++i) matches(backend, CollectiveKind::kAllReduce, DType::kFloat32, 1000, rank, 4);
           }) == "rank 2 exited";
  });
  EXPECT_EQ(statuses, (std::vector<int>{0, 0, 128 + SIGKILL, 0}));
}

bool has_file(const std::string& name) {
  return std::filesystem::exists(absl::StrCat("/dev/shm", name.substr(0, name.find(':'))));
}

TEST(Shm, NoNameIsLeft) {
  auto created = ShmBackend::create(2, kLong);
  ASSERT_TRUE(created.ok());
  EXPECT_TRUE(has_file(created->name));
  auto opened = ShmBackend::open(created->name, 1, 2, kLong);
  ASSERT_TRUE(opened.ok());
  EXPECT_FALSE(has_file(created->name));  // removed while both use it
  auto abandoned = ShmBackend::create(2, kLong);
  ASSERT_TRUE(abandoned.ok());
  EXPECT_TRUE(has_file(abandoned->name));
  abandoned->backend = nullptr;
  EXPECT_FALSE(has_file(abandoned->name));
}

TEST(Shm, OpenChecksTheSegment) {
  auto created = ShmBackend::create(3, kLong);
  ASSERT_TRUE(created.ok());
  const std::string& name = created->name;
  const auto code = [&](const std::string& segment, int rank, int size) {
    return ShmBackend::open(segment, rank, size, kLong).status().code();
  };
  EXPECT_EQ(code("/teletensor-0:0", 1, 3), absl::StatusCode::kNotFound);
  EXPECT_EQ(code("/teletensor-0", 1, 3), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(name.substr(0, name.find(':')) + ":123", 1, 3), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(name, 1, 2), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(name, 3, 3), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(name, 0, 3), absl::StatusCode::kAlreadyExists);
  auto first = ShmBackend::open(name, 1, 3, kLong);
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(code(name, 1, 3), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ShmBackend::create(shm::kMaxRanks + 1, kLong).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Shm, InvalidReductionsAndPeersAreErrors) {
  const Group group = make_group(2);
  Collective c;
  c.kind = CollectiveKind::kAllReduce;
  c.op = ReduceOp::kBand;
  EXPECT_THROW(group[0]->run(c), Error);
  EXPECT_THAT(error_of([&] { group[0]->send(0, 0, {}); }), HasSubstr("expected another rank of 2, got rank 0"));
  EXPECT_THAT(error_of([&] { group[0]->send(2, 0, {}); }), HasSubstr("got rank 2"));
  on_threads(group, [](int, ShmBackend& backend) { backend.run({}); });  // the group is still usable
}

}  // namespace
}  // namespace tt::distributed
