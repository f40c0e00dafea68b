// A client that keeps an engine busy until one of them dies: uploads, operations, reads and downloads in turn.
//
// usage: busy_client ADDRESS [queue] (TELETENSOR_TOKEN in the environment). Prints "busy" after the first round; with
// `queue`, after queueing work without waiting for it. If the engine fails, exits with 3 and prints the message to
// standard error.
#include <cstdio>
#include <string>
#include <vector>

#include "client/connect.h"
#include "engine/schema/op.h"

namespace {

void keep_busy(tt::client::Session& session) {
  const tt::Op& add = *tt::find_op("add");
  const int64_t sizes[] = {1 << 20};
  std::vector<float> values(1 << 20, 1.0f), got(1 << 20);
  auto bytes_of = [](std::vector<float>& v) {
    return absl::MakeSpan(reinterpret_cast<char*>(v.data()), v.size() * sizeof(float));
  };
  for (int round = 0;; ++round) {
    auto x = session.upload(bytes_of(values), tt::DType::kFloat32, sizes, tt::Device{});
    for (int i = 0; i < 50; ++i) {
      const tt::Arg args[] = {x.get(), x.get(), int64_t{1}};
      x = session.call(add, args)[0];
    }
    session.read_into(x, bytes_of(got));
    if (round == 0) std::puts("busy"), std::fflush(stdout);
  }
}

// Queues hours of work, and reads no result.
void queue(tt::client::Session& session) {
  const tt::Op& full = *tt::find_op("full");
  const tt::Op& add = *tt::find_op("add");
  const int64_t sizes[] = {1 << 22};
  const tt::Arg value[] = {tt::Arg(absl::Span<const int64_t>(sizes)), 1.0, tt::Arg(), tt::Arg()};
  auto x = session.call(full, value)[0];
  for (int64_t i = 0;; ++i) {
    const tt::Arg args[] = {x.get(), x.get(), int64_t{1}};
    x = session.call(add, args)[0];
    if (i == 2000) std::puts("busy"), std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    tt::client::ConnectOptions options;
    options.address = argc > 1 ? argv[1] : "";
    auto session = tt::client::connect(options);
    argc > 2 ? queue(*session) : keep_busy(*session);
  } catch (const tt::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
