// Measures a stream of messages through gRPC over loopback TCP, without and with TLS, and nothing else: what a download
// can reach. Server and client are in this process; messages are neither copied nor read.
//
//   ninja -C build grpc_tls_bench && build/bin/grpc_tls_bench
//
// bytes_per_second is of the clock; cpu_s_per_GiB is the processor time of both sides together, which other programs
// disturb less.
#include <benchmark/benchmark.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/certificate.h"
#include "proto/credentials.h"

namespace tt {
namespace {

constexpr size_t kMessageBytes = size_t{2} << 20;  // as in downloads
constexpr int kMessages = 512;                     // per iteration: 1 GiB

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void next(grpc::CompletionQueue& queue, bool* ok = nullptr) {
  void* tag = nullptr;
  bool succeeded = false;
  queue.Next(&tag, &succeeded);
  if (ok != nullptr) *ok = succeeded;
}

// Answers each call with kMessages messages.
class Server {
 public:
  explicit Server(const std::shared_ptr<grpc::ServerCredentials>& credentials) : message_(kMessageBytes, 'x') {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
  }
  ~Server() {
    server_->Shutdown();
    queue_->Shutdown();
  }
  int port() const { return port_; }

  void serve_one() {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream(&context);
    service_.RequestCall(&context, &stream, queue_.get(), queue_.get(), nullptr);
    next(*queue_);
    for (int i = 0; i < kMessages; ++i) {
      const grpc::Slice slice(message_.data(), message_.size(), grpc::Slice::STATIC_SLICE);
      stream.Write(grpc::ByteBuffer(&slice, 1), nullptr);
      next(*queue_);
    }
    stream.Finish(grpc::Status::OK, nullptr);
    next(*queue_);
  }

 private:
  const std::string message_;
  int port_ = 0;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

// Returns the bytes received.
size_t receive_all(grpc::GenericStub& stub) {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(&context, "/bench/Stream", &queue);
  call->StartCall(nullptr);
  next(queue);
  call->WritesDone(nullptr);
  next(queue);
  size_t bytes = 0;
  for (;;) {
    grpc::ByteBuffer message;
    bool ok = false;
    call->Read(&message, nullptr);
    next(queue, &ok);
    if (!ok) break;
    bytes += message.Length();
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  next(queue);
  return bytes;
}

void stream(benchmark::State& state, const std::shared_ptr<grpc::ServerCredentials>& server_side,
            const std::shared_ptr<grpc::ChannelCredentials>& client_side) {
  Server server(server_side);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  grpc::GenericStub stub(
      grpc::CreateCustomChannel(absl::StrCat("ipv4:127.0.0.1:", server.port()), client_side, arguments));
  size_t bytes = 0;
  const double before = processor_seconds();
  for (auto _ : state) {
    std::thread serving([&] { server.serve_one(); });
    bytes += receive_all(stub);
    serving.join();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.counters["cpu_s_per_GiB"] = (processor_seconds() - before) * double{1 << 30} / static_cast<double>(bytes);
}

void BM_Plain(benchmark::State& state) { stream(state, plain_server_credentials(), plain_channel_credentials()); }

void BM_Tls(benchmark::State& state) {
  std::string folder = std::filesystem::temp_directory_path() / "grpc_tls_bench.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return state.SkipWithError("cannot create a folder");
  const TlsFiles files{folder + "/cert.pem", folder + "/key.pem", ""};
  if (create_self_signed(files.certificate, files.key).ok()) {
    const std::string fingerprint = *fingerprint_of(*read_pem(files.certificate));
    stream(state, *server_credentials(files), *pinned_credentials(fingerprint, {}));
  } else {
    state.SkipWithError("cannot create a certificate");
  }
  std::filesystem::remove_all(folder);
}

BENCHMARK(BM_Plain)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(2)->Repetitions(3);
BENCHMARK(BM_Tls)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(2)->Repetitions(3);

}  // namespace
}  // namespace tt

BENCHMARK_MAIN();
