// Cost of a client: a call on the caller's thread, a blocking read compared with a bare gRPC ping, bulk bytes compared
// with memcpy and raw TCP. Prints a table, or JSON with --json. Floors are measured in the same run, alternating with
// teletensor.
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "client/connect.h"
#include "client/connection/private_engine.h"
#include "client/session/session.h"
#include "client/transport/grpc_transport.h"
#include "engine/schema/op.h"
#include "teletensor/v1/engine.grpc.pb.h"

namespace tt::client {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Row {
  std::string what;
  double ours, floor;
  const char* unit;
  bool more_is_better;
};

// ---- A bare bidirectional ping: gRPC's time for the messages of a read

class PingService final : public v1::Engine::Service {
  grpc::Status Session(grpc::ServerContext*, grpc::ServerReaderWriter<v1::Reply, v1::Frame>* stream) override {
    v1::Frame frame;
    v1::Reply reply;
    reply.add_reads()->set_data(std::string(4, 'x'));
    while (stream->Read(&frame)) {
      reply.set_executed(frame.sequence());
      stream->Write(reply);
    }
    return grpc::Status::OK;
  }
};

// A child process that is killed at the end of this object or process.
class Child {
 public:
  template <typename Run>
  explicit Child(Run run) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run();
    _exit(1);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  pid_t pid_;
};

// Starts the ping server in a separate process, like the engine. Call before this process uses gRPC.
std::unique_ptr<Child> start_ping_server(const std::string& address) {
  int ready[2];
  if (pipe(ready) != 0) std::abort();
  auto child = std::make_unique<Child>([&] {
    PingService service;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    auto server = builder.BuildAndStart();
    if (write(ready[1], "r", 1) == 1) server->Wait();
  });
  char byte;
  if (read(ready[0], &byte, 1) != 1) std::abort();
  return child;
}

class Ping {
 public:
  explicit Ping(const std::string& address)
      : stub_(v1::Engine::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
        stream_(stub_->Session(&context_)) {}
  void once() {
    frame_.set_sequence(frame_.sequence() + 1);
    if (frame_.reads_size() == 0) frame_.add_reads()->set_handle(1);
    stream_->Write(frame_);
    stream_->Read(&reply_);
  }

 private:
  std::unique_ptr<v1::Engine::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Frame, v1::Reply>> stream_;
  v1::Frame frame_;
  v1::Reply reply_;
};

// ---- Raw TCP over loopback: one direction, with one byte back at the end

// Returns a socket that is bound to a free port of the loopback interface, and sets `address`.
int bind_loopback(sockaddr_in* address) {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(*address);
  if (bind(listener, reinterpret_cast<sockaddr*>(address), size) != 0) std::abort();
  getsockname(listener, reinterpret_cast<sockaddr*>(address), &size);
  return listener;
}

double raw_tcp_seconds(size_t bytes) {
  sockaddr_in address;
  socklen_t size = sizeof(address);
  int listener = bind_loopback(&address);
  listen(listener, 1);
  std::thread sink([&] {
    int in = accept(listener, nullptr, nullptr);
    std::vector<char> buffer(1 << 20);
    for (size_t got = 0; got < bytes;) {
      ssize_t n = recv(in, buffer.data(), buffer.size(), 0);
      if (n <= 0) break;
      got += static_cast<size_t>(n);
    }
    send(in, "k", 1, 0);
    close(in);
  });
  int out = socket(AF_INET, SOCK_STREAM, 0);
  ::connect(out, reinterpret_cast<sockaddr*>(&address), size);
  std::vector<char> data(1 << 20, 'x');
  auto start = Clock::now();
  for (size_t sent = 0; sent < bytes; sent += data.size()) {
    for (size_t part = 0; part < data.size();) {
      ssize_t n = send(out, data.data() + part, data.size() - part, 0);
      if (n <= 0) std::abort();
      part += static_cast<size_t>(n);
    }
  }
  char byte;
  recv(out, &byte, 1, 0);
  double seconds = seconds_since(start);
  sink.join();
  close(out);
  close(listener);
  return seconds;
}

// ---- teletensor

Tensor zeros(Session& session, SizesView sizes) {
  std::string bytes(static_cast<size_t>(std::max<int64_t>(1, sizes.empty() ? 1 : sizes[0] * sizes[1])) * 4, '\0');
  return session.upload(bytes, DType::kFloat32, sizes, Device());
}

// Returns the nanoseconds per call, in bursts that the engine's queue accepts without blocking the caller.
double call_ns(Session& session) {
  static const Op& add = *find_op("add");
  Tensor a = zeros(session, {8, 8});
  const Arg args[] = {a.get(), a.get(), Arg(1)};
  constexpr int kBurst = 2000;
  std::vector<double> rounds;
  for (int round = 0; round < 200; ++round) {
    auto start = Clock::now();
    for (int i = 0; i < kBurst; ++i) session.call(add, args);
    rounds.push_back(seconds_since(start) / kBurst * 1e9);
    session.synchronize();
  }
  return median(rounds);
}

// Returns the nanoseconds per operation of a chain of dependent calls, until its value has been read.
double chain_ns(Session& session) {
  static const Op& add = *find_op("add");
  constexpr int kLength = 100'000;
  std::vector<double> rounds;
  for (int round = 0; round < 5; ++round) {
    Tensor a = zeros(session, {8, 8});
    Tensor x = a;
    auto start = Clock::now();
    for (int i = 0; i < kLength; ++i) {
      const Arg args[] = {x.get(), a.get(), Arg(1)};
      x = session.call(add, args)[0];
    }
    session.read(x);
    rounds.push_back(seconds_since(start) / kLength * 1e9);
  }
  return median(rounds);
}

struct Latency {
  double ours, ping;
};
// Returns the median latencies of a read and of a ping, measured in alternating rounds. If `compute`, a new operation
// precedes each read.
Latency read_latency(Session& session, Ping& ping, bool compute) {
  static const Op& add = *find_op("add");
  Tensor a = zeros(session, {});
  const Arg args[] = {a.get(), a.get(), Arg(1)};
  std::vector<double> ours, pings;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 150; ++i) {
      auto start = Clock::now();
      session.read(compute ? session.call(add, args)[0] : a);
      if (i >= 10) ours.push_back(seconds_since(start) * 1e6);
    }
    for (int i = 0; i < 150; ++i) {
      auto start = Clock::now();
      ping.once();
      if (i >= 10) pings.push_back(seconds_since(start) * 1e6);
    }
  }
  return {median(ours), median(pings)};
}

double gigabytes_a_second(size_t bytes, const std::function<void()>& move) {
  std::vector<double> rounds;
  for (int round = 0; round < 15; ++round) {
    auto start = Clock::now();
    move();
    rounds.push_back(static_cast<double>(bytes) / seconds_since(start) / 1e9);
  }
  return median(rounds);
}

void measure_transfers(Session& session, const char* over, double floor, std::vector<Row>* rows) {
  constexpr int64_t kSide = 4096;
  std::string bytes(kSide * kSide * 4, 'x');
  Tensor tensor;
  double up = gigabytes_a_second(bytes.size(), [&] {
    tensor = nullptr;
    tensor = session.upload(bytes, DType::kFloat32, {kSide, kSide}, Device());
  });
  double down = gigabytes_a_second(bytes.size(), [&] { session.read_into(tensor, absl::MakeSpan(bytes)); });
  rows->push_back({std::string("upload 64 MiB, ") + over, up, floor, "GB/s", true});
  rows->push_back({std::string("download 64 MiB, ") + over, down, floor, "GB/s", true});
}

double memcpy_speed() {
  std::string from(64 << 20, 'x'), to(64 << 20, 'y');
  return gigabytes_a_second(from.size(), [&] { std::memcpy(to.data(), from.data(), from.size()); });
}

void print(const std::vector<Row>& rows, bool json) {
  if (!json) std::printf("%-34s %10s %10s %8s\n", "what", "ours", "floor", "ratio");
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    double ratio = row.floor > 0 ? row.ours / row.floor : 0;
    if (json) {
      std::printf("%s{\"what\": \"%s\", \"ours\": %.4g, \"floor\": %.4g, \"unit\": \"%s\", \"more_is_better\": %s}%s\n",
                  i == 0 ? "[" : " ", row.what.c_str(), row.ours, row.floor, row.unit,
                  row.more_is_better ? "true" : "false", i + 1 == rows.size() ? "]" : ",");
    } else {
      std::printf("%-34s %10.4g %10.4g %8.2f  %s\n", row.what.c_str(), row.ours, row.floor, ratio, row.unit);
    }
  }
}

// An engine that listens on a free port of the loopback interface.
class TcpEngine {
 public:
  TcpEngine() {
    sockaddr_in address;
    close(bind_loopback(&address));
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    child_ = std::make_unique<Child>([this] {
      std::string binary = PrivateEngine::find_binary();
      execl(binary.c_str(), binary.c_str(), "--no-auth", "--log-level", "error", "--listen", address_.c_str(), nullptr);
    });
  }
  Ref<Session> connect_patiently() const {
    for (int attempt = 0;; ++attempt) {
      try {
        return connect({.address = address_, .client_name = "client_bench", .shared_memory = false});
      } catch (const Error&) {
        if (attempt == 100) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
  }

 private:
  std::string address_;
  std::unique_ptr<Child> child_;
};

void run(const std::string& ping_address, bool json) {
  std::vector<Row> rows;
  Ping ping(ping_address);
  Ref<Session> session = connect({.client_name = "client_bench"});
  rows.push_back({"call, 8x8 add", call_ns(*session), 150, "ns", false});
  rows.push_back({"chain of 8x8 adds until the result is read", chain_ns(*session), 870, "ns", false});
  Latency idle = read_latency(*session, ping, false);
  rows.push_back({"read of a value", idle.ours, idle.ping, "us", false});
  Latency fresh = read_latency(*session, ping, true);
  rows.push_back({"add, then read", fresh.ours, fresh.ping, "us", false});
  measure_transfers(*session, "shared memory", memcpy_speed(), &rows);
  TcpEngine engine;
  size_t bytes = 64 << 20;
  double floor = gigabytes_a_second(bytes, [&] { raw_tcp_seconds(bytes); });
  measure_transfers(*engine.connect_patiently(), "TCP loopback", floor, &rows);
  print(rows, json);
}

}  // namespace
}  // namespace tt::client

int main(int argc, char** argv) {
  bool json = argc > 1 && std::string(argv[1]) == "--json";
  std::string folder = "/tmp/client-bench-XXXXXX";
  if (!mkdtemp(folder.data())) return 1;
  std::string address = "unix:" + folder + "/ping.sock";
  auto ping = tt::client::start_ping_server(address);
  tt::client::run(address, json);
  unlink((folder + "/ping.sock").c_str());
  rmdir(folder.c_str());
  return 0;
}
