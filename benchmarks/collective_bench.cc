// all_reduce of float32 between processes of one host: ShmBackend compared with Gloo over loopback TCP, alternating in
// the same processes. Prints the time per call and the ratio. Arguments: the numbers of ranks, by default 2 and 4.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "distributed/shm/shm_backend.h"

namespace tt::distributed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTimeout{60'000};
constexpr size_t kSizes[] = {4,         64,      1 << 10, 8 << 10,  16 << 10, 64 << 10,
                             256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};

std::shared_ptr<gloo::Context> connect_gloo(const std::string& folder, int rank, int size) {
  gloo::transport::tcp::attr attr("127.0.0.1");
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  gloo::rendezvous::FileStore store(folder);
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attr);
  context->connectFullMesh(store, device);
  return context;
}

std::unique_ptr<ShmBackend> connect_shm(const std::string& folder, int rank, int size) {
  const std::string path = folder + "/segment";
  if (rank == 0) {
    auto created = ShmBackend::create(size, kTimeout);
    if (!created.ok()) return nullptr;
    FILE* file = fopen((path + ".tmp").c_str(), "w");
    fputs(created->name.c_str(), file);
    fclose(file);
    std::filesystem::rename(path + ".tmp", path);
    return std::move(created->backend);
  }
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  char name[64] = {};
  FILE* file = fopen(path.c_str(), "r");
  const bool read = fgets(name, sizeof name, file) != nullptr;
  fclose(file);
  auto opened = read ? ShmBackend::open(name, rank, size, kTimeout) : absl::NotFoundError("no name");
  return opened.ok() ? *std::move(opened) : nullptr;
}

int run_rank(const std::string& folder, int rank, int size) {
  const std::unique_ptr<ShmBackend> shm = connect_shm(folder, rank, size);
  const std::shared_ptr<gloo::Context> context = connect_gloo(folder, rank, size);
  if (!shm) return 1;
  std::vector<float> input(kSizes[std::size(kSizes) - 1] / sizeof(float), 1.0f), output(input.size());
  for (size_t bytes : kSizes) {
    const size_t count = bytes / sizeof(float);
    const auto ours = [&] {
      Collective c;
      c.kind = CollectiveKind::kAllReduce;
      c.count = count;
      c.input = reinterpret_cast<const char*>(input.data());
      c.output = reinterpret_cast<char*>(output.data());
      shm->run(c);
    };
    const auto peers = [&] {
      gloo::AllreduceOptions options(context);
      options.setInput(input.data(), count);
      options.setOutput(output.data(), count);
      options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
      gloo::allreduce(options);
    };
    const size_t calls = std::clamp<size_t>((size_t{2} << 20) / bytes, 1, 200);
    const auto per_call = [&](const auto& call) {
      shm->run({});  // a barrier
      const Clock::time_point start = Clock::now();
      for (size_t i = 0; i < calls; ++i) call();
      return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / static_cast<double>(calls);
    };
    std::vector<double> a, b;
    for (int batch = 0; batch < 15; ++batch) {
      a.push_back(per_call(ours));
      b.push_back(per_call(peers));
    }
    if (output[count - 1] != static_cast<float>(size)) return 2;
    if (rank != 0) continue;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    const double x = a[a.size() / 2], y = b[b.size() / 2];
    printf("%5d %10zu %12.1f %12.1f %8.2f %12.1f %12.1f %8.2f %9.2f\n", size, bytes, x, y, y / x, a[0], b[0],
           b[0] / a[0], static_cast<double>(bytes) / x / 1e3);
    fflush(stdout);
  }
  return 0;
}

int run(int size) {
  char folder[] = "/tmp/collective_bench.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) _exit(run_rank(folder, rank, size));
    children.push_back(child);
  }
  int failed = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status;
  }
  std::filesystem::remove_all(folder);
  return failed;
}

}  // namespace
}  // namespace tt::distributed

int main(int argc, char** argv) {
  printf("Median and minimum time of one all_reduce in microseconds; ratio: Gloo's time by ours\n");
  printf("%5s %10s %12s %12s %8s %12s %12s %8s %9s\n", "ranks", "bytes", "shm", "gloo", "ratio", "shm min", "gloo min",
         "ratio", "shm GB/s");
  fflush(stdout);
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {2, 4};
  for (int size : sizes) {
    if (tt::distributed::run(size) != 0) {
      fprintf(stderr, "a rank failed\n");
      return 1;
    }
  }
  return 0;
}
