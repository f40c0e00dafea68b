// The relay's conditions, measured with sockets. Upper bounds on times are generous, because the machine may be loaded.
#include "tests/relay/relay.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>

namespace tt::relay {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A relay between unix sockets, and connections through it.
class RelayTest : public ::testing::Test {
 protected:
  struct Pair {
    int client, server;
  };

  void SetUp() override {
    folder_ = ::testing::TempDir() + "/relay-XXXXXX";
    ASSERT_TRUE(mkdtemp(folder_.data()));
    listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un name = named(folder_ + "/target");
    ASSERT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    ASSERT_EQ(listen(listener_, 64), 0);
  }
  void TearDown() override {
    relay_ = nullptr;
    for (int fd : open_) close(fd);
    close(listener_);
    unlink((folder_ + "/target").c_str());
    rmdir(folder_.c_str());
  }

  static sockaddr_un named(const std::string& path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    return name;
  }
  void start(Conditions up, Conditions down = {}, uint64_t seed = 1) {
    relay_ = std::make_unique<Relay>(Options{.listen = "unix:" + folder_ + "/relay",
                                             .target = "unix:" + folder_ + "/target",
                                             .conditions = {up, down},
                                             .seed = seed});
  }
  int try_connect() {
    const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    open_.push_back(client);
    const sockaddr_un name = named(folder_ + "/relay");
    return connect(client, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 ? client : -1;
  }
  Pair connected() {
    const int client = try_connect();
    EXPECT_GE(client, 0);
    open_.push_back(accept(listener_, nullptr, nullptr));
    return {client, open_.back()};
  }
  // Waits for `size` bytes, or fewer at the end or after a second of silence.
  static std::string receive(int fd, size_t size, int milliseconds = 1000) {
    std::string bytes(size, '\0');
    size_t got = 0;
    for (pollfd readable{fd, POLLIN, 0}; got < size && poll(&readable, 1, milliseconds) == 1;) {
      const ssize_t count = read(fd, bytes.data() + got, size - got);
      if (count <= 0) break;
      got += static_cast<size_t>(count);
    }
    bytes.resize(got);
    return bytes;
  }
  static void send_all(int fd, const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t count = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (count <= 0) return;
      at += static_cast<size_t>(count);
    }
  }
  static bool is_silent(int fd) {
    pollfd readable{fd, POLLIN, 0};
    return poll(&readable, 1, 100) == 0;
  }
  static bool has_ended(int fd) { return receive(fd, 1).empty() && !is_silent(fd); }

  std::string folder_;
  int listener_ = -1;
  std::vector<int> open_;
  std::unique_ptr<Relay> relay_;
};

TEST_F(RelayTest, DelaysEachDirection) {
  start({.delay = 0.05}, {.delay = 0.1});
  const Pair pair = connected();
  const auto start = Clock::now();
  send_all(pair.client, "up");
  EXPECT_EQ(receive(pair.server, 2), "up");
  EXPECT_GE(seconds_since(start), 0.05);
  send_all(pair.server, "down");
  EXPECT_EQ(receive(pair.client, 4), "down");
  EXPECT_GE(seconds_since(start), 0.15);
  EXPECT_LT(seconds_since(start), 0.5);
}

TEST_F(RelayTest, KeepsOrderOfBytesUnderJitter) {
  start({.delay = 0.001, .jitter = 0.02});
  const Pair pair = connected();
  std::mt19937 random(3);
  std::string sent(1'000'000, '\0');
  for (char& c : sent) c = static_cast<char>(random());
  std::thread sender([&] {
    for (size_t at = 0; at < sent.size();) {
      const size_t size = std::min<size_t>(sent.size() - at, random() % 5000 + 1);
      send_all(pair.client, sent.substr(at, size));
      at += size;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    shutdown(pair.client, SHUT_WR);
  });
  EXPECT_TRUE(receive(pair.server, sent.size() + 1) == sent);
  sender.join();
  EXPECT_TRUE(has_ended(pair.server));
  EXPECT_EQ(relay_->traffic()[kToTarget].bytes, sent.size());
}

TEST_F(RelayTest, ConnectionsOvertakeEachOther) {
  start({.connection_delay = 0.2});
  std::vector<Pair> pairs;
  for (int i = 0; i < 16; ++i) pairs.push_back(connected());
  std::vector<pollfd> readable;
  for (const Pair& pair : pairs) readable.push_back({pair.server, POLLIN, 0});
  for (const Pair& pair : pairs) send_all(pair.client, "x");
  std::vector<size_t> arrivals;
  while (arrivals.size() < pairs.size() && poll(readable.data(), readable.size(), 1000) > 0) {
    for (size_t i = 0; i < readable.size(); ++i) {
      if (readable[i].revents == 0) continue;
      arrivals.push_back(i);
      readable[i].fd = -1;
    }
  }
  EXPECT_EQ(arrivals.size(), pairs.size());
  EXPECT_FALSE(std::is_sorted(arrivals.begin(), arrivals.end()));
}

TEST_F(RelayTest, LimitsRateOfAllConnectionsTogether) {
  start({.delay = 0.02, .rate = 4e6});
  const Pair a = connected(), b = connected();
  const std::string bytes(500'000, 'x');
  const auto start = Clock::now();
  std::thread first([&] { send_all(a.client, bytes); }), second([&] { send_all(b.client, bytes); });
  std::thread reader([&] { EXPECT_TRUE(receive(a.server, bytes.size()) == bytes); });
  EXPECT_TRUE(receive(b.server, bytes.size()) == bytes);
  reader.join();
  EXPECT_GE(seconds_since(start), 0.24);  // 1 MB at 4 MB/s; 40 KB of the first burst
  EXPECT_LT(seconds_since(start), 1.5);
  first.join();
  second.join();
}

// A byte of a quiet connection does not wait for all bytes of a busy one.
TEST_F(RelayTest, ServesConnectionsInTurn) {
  start({.rate = 4e6});
  const Pair busy = connected(), quiet = connected();
  std::thread sender([&] { send_all(busy.client, std::string(4'000'000, 'x')); });
  std::thread reader([&] { EXPECT_EQ(receive(busy.server, 4'000'000).size(), 4'000'000u); });
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto start = Clock::now();
    send_all(quiet.client, "y");
    EXPECT_EQ(receive(quiet.server, 1), "y");
    EXPECT_LT(seconds_since(start), 0.3);  // 16 ms of the queue; all bytes take a second
  }
  sender.join();
  reader.join();
}

TEST_F(RelayTest, StopsReadingIfTheTargetDoesNot) {
  start({.rate = 1e9});
  const Pair pair = connected();
  std::thread sender([&] { send_all(pair.client, std::string(32 << 20, 'x')); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(relay_->traffic()[kToTarget].bytes, size_t{16} << 20);
  EXPECT_EQ(receive(pair.server, 32 << 20).size(), size_t{32} << 20);
  sender.join();
}

TEST_F(RelayTest, CutsAfterExactNumberOfBytes) {
  start({});
  relay_->cut_after(kToTarget, 12'345);
  const Pair pair = connected(), other = connected();
  send_all(pair.client, std::string(20'000, 'x'));
  EXPECT_EQ(receive(pair.server, 20'000).size(), 12'345u);
  EXPECT_TRUE(has_ended(pair.server));
  EXPECT_TRUE(has_ended(other.client));
  const Pair later = connected();
  send_all(later.client, std::string(20'000, 'x'));
  EXPECT_EQ(receive(later.server, 20'000).size(), 20'000u);
}

TEST_F(RelayTest, CutsRepeatedly) {
  start({});
  relay_->cut_every(1000);
  for (int i = 0; i < 5; ++i) {
    const Pair pair = connected();
    send_all(pair.client, std::string(2001, 'x'));
    const size_t got = receive(pair.server, 2001).size();
    EXPECT_GE(got, 1u);
    EXPECT_LE(got, 2000u);
  }
  relay_->cut_every(0);
  const Pair pair = connected();
  send_all(pair.client, std::string(9000, 'x'));
  EXPECT_EQ(receive(pair.server, 9000).size(), 9000u);
}

TEST_F(RelayTest, StallHoldsBytesAndEnds) {
  start({});
  const Pair pair = connected(), closed = connected();
  relay_->stall();
  send_all(pair.client, "held");
  close(closed.client);
  open_.erase(std::find(open_.begin(), open_.end(), closed.client));
  EXPECT_TRUE(is_silent(pair.server));
  EXPECT_TRUE(is_silent(closed.server));
  const int waiting = try_connect();
  EXPECT_GE(waiting, 0);
  send_all(waiting, "waits");
  EXPECT_TRUE(is_silent(listener_));
  relay_->resume();
  EXPECT_EQ(receive(pair.server, 4), "held");
  EXPECT_TRUE(has_ended(closed.server));
  open_.push_back(accept(listener_, nullptr, nullptr));
  EXPECT_EQ(receive(open_.back(), 5), "waits");
}

TEST_F(RelayTest, LostConnectionsStaySilent) {
  start({});
  const Pair pair = connected();
  send_all(pair.client, "x");
  EXPECT_EQ(receive(pair.server, 1), "x");
  relay_->lose();
  send_all(pair.client, "lost");
  shutdown(pair.client, SHUT_WR);
  EXPECT_TRUE(is_silent(pair.server));
  const Pair later = connected();
  send_all(later.client, "new");
  EXPECT_EQ(receive(later.server, 3), "new");
  EXPECT_TRUE(is_silent(pair.server));
}

TEST_F(RelayTest, RefusesConnections) {
  start({});
  relay_->refuse(true);
  EXPECT_LT(try_connect(), 0);
  EXPECT_EQ(errno, ECONNREFUSED);
  relay_->refuse(false);
  const Pair pair = connected();
  send_all(pair.server, "y");
  EXPECT_EQ(receive(pair.client, 1), "y");
}

TEST_F(RelayTest, ChecksAddresses) {
  for (const char* address :
       {"", "localhost:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "unix:"}) {
    EXPECT_THROW(Relay({.target = address}), std::invalid_argument) << address;
  }
}

}  // namespace
}  // namespace tt::relay
