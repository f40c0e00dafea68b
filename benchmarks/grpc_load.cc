// A load of unary gRPC calls from few connections and one thread, whose client takes little processor time: what a
// server can answer, where clients in Python would use the cores themselves. benchmarks/serving.py runs it.
//
//   ninja -C build grpc_load && build/bin/grpc_load ADDRESS METHOD REQUEST_FILE CALLS CHANNELS SECONDS
//
// CALLS are in progress at any time, on CHANNELS connections; REQUEST_FILE has the bytes of each request's message.
// Prints as JSON the calls per second, the median and the 99th percentile of their latency, and the client's processor
// time per call. Ends with the status 1 if a call fails.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Call {
  grpc::GenericStub* stub = nullptr;
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
  Clock::time_point begin;

  void start(const std::string& method, const grpc::ByteBuffer& request, grpc::CompletionQueue* queue) {
    context = std::make_unique<grpc::ClientContext>();
    begin = Clock::now();
    reader = stub->PrepareUnaryCall(context.get(), method, request, queue);
    reader->StartCall();
    reader->Finish(&reply, &status, this);
  }
};

}  // namespace

int main(int count, char** words) {
  if (count != 7) {
    std::fprintf(stderr, "usage: grpc_load ADDRESS METHOD REQUEST_FILE CALLS CHANNELS SECONDS\n");
    return 2;
  }
  std::ifstream file(words[3], std::ios::binary);
  const grpc::Slice slice(std::string(std::istreambuf_iterator<char>(file), {}));
  const grpc::ByteBuffer request(&slice, 1);
  const std::string method = words[2];
  std::vector<Call> calls(static_cast<size_t>(std::atoi(words[4])));
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs(static_cast<size_t>(std::max(std::atoi(words[5]), 1)));
  for (size_t i = 0; i < stubs.size(); ++i) {
    grpc::ChannelArguments arguments;  // that differ, so that each channel has a connection of its own
    arguments.SetInt("teletensor.channel", static_cast<int>(i));
    stubs[i] = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(words[1], grpc::InsecureChannelCredentials(), arguments));
  }
  grpc::CompletionQueue queue;
  const auto length = std::chrono::duration<double>(std::atof(words[6]));
  const Clock::time_point begin = Clock::now();
  const double processor = processor_seconds();
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i].stub = stubs[i % stubs.size()].get();
    calls[i].start(method, request, &queue);
  }
  std::vector<double> latencies;
  size_t running = calls.size();
  void* tag = nullptr;
  bool is_ok = false;
  while (running != 0 && queue.Next(&tag, &is_ok)) {
    Call& call = *static_cast<Call*>(tag);
    const Clock::time_point now = Clock::now();
    if (!call.status.ok()) {
      std::fprintf(stderr, "grpc_load: %s\n", call.status.error_message().c_str());
      return 1;
    }
    latencies.push_back(std::chrono::duration<double>(now - call.begin).count());
    if (now - begin < length) {
      call.start(method, request, &queue);
    } else {
      --running;
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const double used = processor_seconds() - processor;
  if (latencies.empty()) return 1;
  std::sort(latencies.begin(), latencies.end());
  const auto at = [&](double part) {
    return latencies[static_cast<size_t>(part * static_cast<double>(latencies.size() - 1))] * 1e3;
  };
  const auto answered = static_cast<double>(latencies.size());
  std::printf("{\"requests per second\": %.0f, \"p50 ms\": %.3f, \"p99 ms\": %.3f, \"client us\": %.1f}\n",
              answered / seconds, at(0.5), at(0.99), used / answered * 1e6);
  return 0;
}
