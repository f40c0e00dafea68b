// HttpConnections: limits, slow and silent peers, and answers that take long.
#include "server/http/connections.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/mutex.h"
#include "tests/server/wait_until.h"

namespace tt::server {
namespace {

using ::testing::StartsWith;

constexpr timeval kHang{20, 0};              // a test that waits for so long has failed
constexpr size_t kLarge = size_t{32} << 20;  // more than the sockets' buffers hold
constexpr char kRequest[] = "GET / HTTP/1.1\r\n\r\n";

// A connection of a client. Reading fails after kHang.
class Peer {
 public:
  explicit Peer(const Address& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &kHang, sizeof kHang);
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.port, &port));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<uint16_t>(port));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  }
  void send(absl::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(fd_.get(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
  }
  // Everything until the connection's end, or until `end` if it is not empty; "hangs" if there is none, "reset" if it
  // is reset. Waits for `pause` after each 4 KiB.
  std::string receive(absl::string_view end = "", std::chrono::microseconds pause = {}) {
    std::string text;
    char bytes[4096];
    for (;;) {
      const ssize_t count = recv(fd_.get(), bytes, sizeof bytes, 0);
      if (count == 0) return text;
      if (count < 0) return errno == EAGAIN ? "hangs" : "reset";
      text.append(bytes, static_cast<size_t>(count));
      if (pause.count() != 0) std::this_thread::sleep_for(pause);
      if (!end.empty() && absl::EndsWith(text, end)) return text;
    }
  }

 private:
  FileDescriptor fd_;
};

class HttpConnectionsTest : public ::testing::Test {
 protected:
  ~HttpConnectionsTest() override { release(); }

  // Answers "GET /held" when release() is called, "/cancelled" when the answer is in vain, "GET /large" with kLarge
  // bytes, and others with the size of the request.
  void start(const HttpConnections::Options& options) {
    auto started = HttpConnections::start(
        &address_, nullptr, options,
        [this](const std::string& request, const std::string&, const std::function<bool()>& is_cancelled) {
          return HttpConnections::Reply{answer(request, is_cancelled), kept_};
        },
        [](absl::string_view request) { return absl::StartsWith(request, "GET /quick "); }, &admit);
    ASSERT_TRUE(started.ok()) << started.status();
    connections_ = *std::move(started);
  }
  // Admits bodies of "POST N ", which have N bytes, and refuses those of "PUT ".
  static HttpConnections::Body admit(absl::string_view head, const std::string&, bool) {
    HttpConnections::Body body;
    if (absl::StartsWith(head, "PUT ")) body.refusal = "refused";
    if (!absl::ConsumePrefix(&head, "POST ")) return body;
    EXPECT_TRUE(absl::SimpleAtoi(head.substr(0, head.find(' ')), &body.bytes));
    body.is_slow = true;
    body.wants_continue = absl::StrContains(head, "expect");
    return body;
  }
  std::string answer(const std::string& request, const std::function<bool()>& is_cancelled) {
    if (absl::StrContains(request, "/cancelled ")) {
      ++waiting_;
      if (testing::wait_until(is_cancelled)) ++cancelled_;
      return "cancelled";
    }
    if (absl::StrContains(request, "keep")) {
      return "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nkept";
    }
    if (absl::StartsWith(request, "GET /large ")) return std::string(kLarge, 'x');
    if (absl::StrContains(request, "/held ")) {
      MutexLock lock(mutex_);
      ++held_;
      changed_.notify_all();
      changed_.wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return released_; });
    }
    return absl::StrCat("answer to ", request.size());
  }
  void await_held(int count) {
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return held_ >= count; });
  }
  void release() {
    MutexLock lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  std::string request(absl::string_view text = kRequest) {
    Peer peer(address_);
    peer.send(text);
    return peer.receive();
  }

  // Reads until the answer's end.
  static std::string receive_kept(Peer& peer) { return peer.receive("kept"); }

  Address address_{.host = "127.0.0.1", .port = "0"};
  Mutex mutex_;
  CondVar changed_;
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<int> waiting_{0}, cancelled_{0};           // requests for "/cancelled"
  std::shared_ptr<int> kept_ = std::make_shared<int>();  // with each answer
  std::unique_ptr<HttpConnections> connections_;
};

TEST_F(HttpConnectionsTest, AnAnswerIsCancelledIfItsPeerHasGone) {
  start({.body_threads = 1});
  Peer stays(address_);
  {
    Peer peer(address_);
    peer.send("POST 1 /cancelled \r\n\r\nx");
    EXPECT_TRUE(testing::wait_until([&] { return waiting_ == 1; }));
    EXPECT_EQ(cancelled_, 0);
  }
  EXPECT_TRUE(testing::wait_until([&] { return cancelled_ == 1; }));
  stays.send("POST 1 /cancelled \r\n\r\nx");
  EXPECT_TRUE(testing::wait_until([&] { return waiting_ == 2; }));
  EXPECT_FALSE(testing::wait_until([&] { return cancelled_ == 2; }, std::chrono::milliseconds(100)));
  connections_.reset();
  EXPECT_EQ(cancelled_, 2);
}

TEST_F(HttpConnectionsTest, AnswersARequestThatArrivesInPieces) {
  start({});
  Peer peer(address_);
  for (const char c : absl::string_view(kRequest)) peer.send(absl::string_view(&c, 1));
  EXPECT_EQ(peer.receive(), absl::StrCat("answer to ", strlen(kRequest)));
}

TEST_F(HttpConnectionsTest, ReceivesBodiesThatAreAdmitted) {
  start({.body_threads = 1});
  const std::string head = "POST 200000 \r\n\r\n", body(200'000, 'b');
  EXPECT_EQ(request(head + body), absl::StrCat("answer to ", head.size() + body.size()));
  Peer peer(address_);
  peer.send(head.substr(0, 5));
  peer.send(head.substr(5) + "b");
  for (size_t at = 1; at < body.size(); at += 50'000) peer.send(body.substr(at, 50'000));
  EXPECT_EQ(peer.receive(), absl::StrCat("answer to ", head.size() + body.size()));
  EXPECT_EQ(request("PUT 5 \r\n\r\n12345"), "refused");
  Peer waiting(address_);
  waiting.send("POST 3 expect\r\n\r\n");
  EXPECT_EQ(waiting.receive("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  waiting.send("abc");
  EXPECT_THAT(waiting.receive(), StartsWith("answer"));
}

TEST_F(HttpConnectionsTest, BodiesAreLimitedTogether) {
  start({.body_bytes = 1000, .body_threads = 1});
  EXPECT_THAT(request("POST 1001 \r\n\r\n"), StartsWith("HTTP/1.1 503"));
  {
    Peer slow(address_);
    slow.send("POST 400 \r\n\r\nx");
    EXPECT_TRUE(testing::wait_until(
        [&] { return absl::StartsWith(request("POST 101 \r\n\r\n" + std::string(101, 'x')), "HTTP/1.1 503"); }));
    EXPECT_THAT(request("POST 100 \r\n\r\n" + std::string(100, 'x')), StartsWith("answer"));  // half for an address
  }
  // The bytes of a connection that was closed, and of those that were answered, are free again.
  EXPECT_TRUE(testing::wait_until(
      [&] { return absl::StartsWith(request("POST 1000 \r\n\r\n" + std::string(1000, 'x')), "answer"); }));
}

TEST_F(HttpConnectionsTest, ABodyThatDoesNotArriveIsGivenUp) {
  start({.body_timeout = std::chrono::milliseconds(50), .body_threads = 1});
  EXPECT_EQ(request("POST 10 \r\n\r\nx"), "");
}

TEST_F(HttpConnectionsTest, RequestsWithBodiesDelayNoOthers) {
  start({.body_threads = 1});
  Peer held(address_), waiting(address_);
  held.send("POST 1 /held \r\n\r\nx");
  await_held(1);
  waiting.send("POST 1 \r\n\r\nx");
  EXPECT_THAT(request(), StartsWith("answer"));
  release();
  EXPECT_THAT(held.receive(), StartsWith("answer"));
  EXPECT_THAT(waiting.receive(), StartsWith("answer"));
}

TEST_F(HttpConnectionsTest, RequestsThatWaitHaveThreadsOfTheirOwn) {
  start({.body_threads = 1, .max_body_threads = 4, .thread_idle = std::chrono::milliseconds(50)});
  std::vector<std::unique_ptr<Peer>> held;
  for (int i = 1; i <= 3; ++i) {
    held.push_back(std::make_unique<Peer>(address_));
    held.back()->send("POST 1 /held \r\n\r\nx");
    await_held(i);
    EXPECT_THAT(request("POST 1 \r\n\r\nx"), StartsWith("answer"));
  }
  held.push_back(std::make_unique<Peer>(address_));
  held.back()->send("POST 1 /held \r\n\r\nx");
  await_held(4);
  Peer waiting(address_);  // there are four threads at most
  waiting.send("POST 1 \r\n\r\nx");
  EXPECT_THAT(request(), StartsWith("answer"));
  release();
  for (const auto& peer : held) EXPECT_THAT(peer->receive(), StartsWith("answer"));
  EXPECT_THAT(waiting.receive(), StartsWith("answer"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the further threads end
  for (int i = 0; i < 3; ++i) EXPECT_THAT(request("POST 1 \r\n\r\nx"), StartsWith("answer"));
}

// Threads of this process.
size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(HttpConnectionsTest, FurtherThreadsEndUnderLightLoad) {
  start({.body_threads = 2, .max_body_threads = 16, .thread_idle = std::chrono::milliseconds(500)});
  const size_t before = threads();
  std::vector<std::unique_ptr<Peer>> held;
  for (int i = 1; i <= 12; ++i) {
    held.push_back(std::make_unique<Peer>(address_));
    held.back()->send("POST 1 /held \r\n\r\nx");
    await_held(i);
  }
  EXPECT_EQ(threads(), before + 10);
  release();
  for (const auto& peer : held) EXPECT_THAT(peer->receive(), StartsWith("answer"));
  EXPECT_TRUE(testing::wait_until([&] {  // one request after the other, each of which could keep a thread for 500 ms
    EXPECT_THAT(request("POST 1 \r\n\r\nx"), StartsWith("answer"));
    return threads() == before;
  }));
}

TEST_F(HttpConnectionsTest, AnswersFurtherRequestsOfAConnectionThatStaysOpen) {
  start({.idle_timeout = std::chrono::milliseconds(100), .body_threads = 1});
  Peer peer(address_);
  for (int i = 0; i < 3; ++i) {
    peer.send("POST 4 \r\n\r\nkeep");
    EXPECT_THAT(receive_kept(peer), StartsWith("HTTP/1.1 200"));
    peer.send("GET /keep HTTP/1.1\r\n\r\n");
    EXPECT_THAT(receive_kept(peer), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_EQ(peer.receive(), "");  // after idle_timeout
  // A request that is sent before the answer is not served.
  Peer early(address_);
  early.send("POST 4 \r\n\r\nkeepGET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(early.receive(), ::testing::EndsWith("kept"));
}

TEST_F(HttpConnectionsTest, SilentPeersDelayNobody) {
  start({.per_address = 100, .receive_timeout = std::chrono::seconds(1)});
  std::vector<std::unique_ptr<Peer>> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(std::make_unique<Peer>(address_));
    if (i % 2 == 0) silent.back()->send("GET / HTTP/1.1\r\nx: ");
  }
  for (int i = 0; i < 20; ++i) EXPECT_THAT(request(), StartsWith("answer"));
  EXPECT_EQ(silent.front()->receive(), "");  // after receive_timeout
}

TEST_F(HttpConnectionsTest, NewConnectionsReplaceIncompleteOnes) {
  start({.per_address = 3, .receive_timeout = std::chrono::hours(1)});
  Peer first(address_), second(address_), third(address_);
  second.send("GET /");
  EXPECT_THAT(request(), StartsWith("answer"));
  EXPECT_EQ(first.receive(), "");
  second.send(" HTTP/1.1\r\n\r\n");
  EXPECT_THAT(second.receive(), StartsWith("answer"));
}

TEST_F(HttpConnectionsTest, TheTotalIsLimited) {
  start({.connections = 3, .receive_timeout = std::chrono::hours(1)});
  Peer first(address_), second(address_), third(address_);
  EXPECT_THAT(request(), StartsWith("answer"));
  EXPECT_EQ(first.receive(), "");
}

TEST_F(HttpConnectionsTest, AnswersThatTakeLongDoNotDelayQuickOnes) {
  start({.per_address = 8});
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 5; ++i) {
    peers.push_back(std::make_unique<Peer>(address_));
    peers.back()->send("GET /held HTTP/1.1\r\n\r\n");
  }
  await_held(2);  // every computing thread
  EXPECT_THAT(request("GET /quick HTTP/1.1\r\n\r\n"), StartsWith("answer"));
  release();
  for (const auto& peer : peers) EXPECT_THAT(peer->receive(), StartsWith("answer"));
}

TEST_F(HttpConnectionsTest, PeersThatLeaveBeforeTheirAnswerAreForgotten) {
  start({});
  for (int i = 0; i < 3; ++i) {
    Peer peer(address_);
    peer.send("GET /held HTTP/1.1\r\n\r\n");
    if (i < 2) await_held(i + 1);
  }
  release();
  EXPECT_THAT(request(), StartsWith("answer"));
}

TEST_F(HttpConnectionsTest, RequestsAreLimited) {
  start({.request_bytes = 100});
  const std::string line = absl::StrCat("GET /", std::string(200, 'x'));
  EXPECT_THAT(request(line), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(request(line + " HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(request(absl::StrCat("GET / HTTP/1.1\r\n\r\n", std::string(20'000, 'x'))), StartsWith("answer to 18"));
}

TEST_F(HttpConnectionsTest, AnswersThatWaitForTheirPeersAreLimited) {
  start({.waiting_bytes = 1 << 20});
  Peer slow(address_);
  slow.send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(testing::wait_until([&] { return absl::StartsWith(request(), "HTTP/1.1 503 "); }));
  EXPECT_THAT(request("GET /quick HTTP/1.1\r\n\r\n"), StartsWith("answer"));
  EXPECT_GT(kept_.use_count(), 1);
  EXPECT_EQ(slow.receive().size(), kLarge);
  EXPECT_TRUE(testing::wait_until([&] { return kept_.use_count() == 1; }));
  EXPECT_TRUE(testing::wait_until([&] { return absl::StartsWith(request(), "answer"); }));
}

TEST_F(HttpConnectionsTest, PeersThatDoNotReadAreClosed) {
  start({.waiting_bytes = 1 << 20, .send_timeout = std::chrono::seconds(2)});
  Peer slow(address_);
  slow.send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(testing::wait_until([&] { return absl::StartsWith(request(), "HTTP/1.1 503 "); }));
  EXPECT_TRUE(testing::wait_until([&] { return absl::StartsWith(request(), "answer"); }));  // its answer is gone
  const std::string received = slow.receive();
  EXPECT_NE(received, "hangs");
  EXPECT_LT(received.size(), kLarge);
}

TEST_F(HttpConnectionsTest, PeersThatReadSteadilyHaveTime) {
  start({.send_timeout = std::chrono::milliseconds(500), .body_rate = size_t{8} << 20});
  Peer slow(address_);
  slow.send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_EQ(slow.receive("", std::chrono::microseconds(150)).size(), kLarge);  // in more than a second
}

TEST_F(HttpConnectionsTest, StopsWithOpenConnections) {
  start({});
  Peer peer(address_);
  peer.send("GET ");
  connections_ = nullptr;
  const std::string received = peer.receive();
  EXPECT_TRUE(received.empty() || received == "reset") << received;
}

}  // namespace
}  // namespace tt::server
