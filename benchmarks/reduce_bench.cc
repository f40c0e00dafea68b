// Reductions, scans, sorts and indexing through the dispatcher, compared with a plain read (or copy) of the bytes that
// they touch, alternating in one process. Prints milliseconds and the ratio, or JSON with --json. A number as argument
// sets the threads.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/ops.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt {
namespace {

using Clock = std::chrono::steady_clock;

struct Row {
  std::string what;
  double ours, floor;  // seconds
};

// Reads `n` elements at the maximum speed of one core's loads.
TT_CLONES float read(const float* __restrict x, int64_t n) {
  float lane[64] = {};
  for (int64_t i = 0; i + 64 <= n; i += 64) {
    for (int64_t l = 0; l < 64; ++l) lane[l] += x[i + l];
  }
  return *std::max_element(lane, lane + 64);
}

volatile float sink;

void read_all(const Tensor& t) {
  parallel_for(t.numel(), 1 << 18,
               [&](int64_t begin, int64_t end) { sink = read(t.data_as<float>() + begin, end - begin); });
}

// Minimum time of many alternating runs of both; on a shared machine the minimum is reproducible.
Row measure(std::string what, const std::function<void()>& ours, const std::function<void()>& floor) {
  Row row{std::move(what), 1e9, 1e9};
  const auto once = [](const std::function<void()>& f) {
    const Clock::time_point start = Clock::now();
    f();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double spent = 0;
  for (int round = 0; round < 200 && (round < 8 || spent < 0.5); ++round) {
    const double a = once(ours), b = once(floor);
    spent += a + b;
    if (round < 2) continue;
    row.ours = std::min(row.ours, a);
    row.floor = std::min(row.floor, b);
  }
  return row;
}

Tensor uniform(Sizes sizes) { return ops::rand(sizes, DType::kFloat32, Device{}); }

void bench_reductions(std::vector<Row>& rows) {
  const Tensor x = uniform({2500, 4000});
  const auto floor = [&] { read_all(x); };
  const int64_t zero = 0, one = 1;
  using Dims = std::optional<absl::Span<const int64_t>>;
  const struct {
    const char* name;
    Dims dims;
  } ways[] = {{"all", Dims()}, {"dim 0", absl::MakeConstSpan(&zero, 1)}, {"dim 1", absl::MakeConstSpan(&one, 1)}};
  for (const auto& way : ways) {
    rows.push_back(measure(
        std::string("sum, ") + way.name, [&] { ops::sum(x, way.dims, false, {}); }, floor));
    rows.push_back(measure(
        std::string("amax, ") + way.name, [&] { ops::amax(x, way.dims, false); }, floor));
    rows.push_back(measure(
        std::string("var, ") + way.name, [&] { ops::var(x, way.dims, 1, false); }, floor));
  }
  rows.push_back(measure(
      "argmax, all", [&] { ops::argmax(x, std::nullopt, false); }, floor));
  for (int64_t dim : {0, 1}) {
    const std::string along = ", dim " + std::to_string(dim);
    rows.push_back(measure(
        "argmax" + along, [&] { ops::argmax(x, dim, false); }, floor));
    rows.push_back(measure(
        "max with indices" + along, [&] { ops::max_dim(x, dim, false); }, floor));
    rows.push_back(measure(
        "logsumexp" + along,
        [&] {
          ops::logsumexp(x, {&dim, 1}, false);
        },
        floor));
  }
}

void bench_orders(std::vector<Row>& rows) {
  const Tensor x = uniform({1'000'000}), square = uniform({1000, 1000});
  const Tensor copy_to = uniform({1'000'000});
  const auto floor = [&] { std::memcpy(copy_to.data(), x.data(), 4 * x.numel()); };
  rows.push_back(measure(
      "sort 1e6", [&] { ops::sort(x, 0, false); }, floor));
  rows.push_back(measure(
      "sort 1000 rows of 1000", [&] { ops::sort(square, 1, false); }, floor));
  rows.push_back(measure(
      "topk 100 of 1e6", [&] { ops::topk(x, 100, 0, true, true); }, floor));
  rows.push_back(measure(
      "cumsum 1e6", [&] { ops::cumsum(x, 0, {}); }, floor));
  rows.push_back(measure(
      "cumsum 1000x1000, dim 0", [&] { ops::cumsum(square, 0, {}); }, floor));
  const Tensor indices = ops::randperm(1'000'000, DType::kInt64, Device{});
  rows.push_back(measure(
      "gather 1e6 at random", [&] { ops::gather(x, 0, indices, false); }, floor));
  rows.push_back(measure(
      "scatter_add 1e6 at random", [&] { ops::scatter_add(x, 0, indices, x); }, floor));
  const Tensor row_indices = ops::randperm(1000, DType::kInt64, Device{});
  rows.push_back(measure(
      "index_select 1000 rows of 1000", [&] { ops::index_select(square, 0, row_indices); }, floor));
  const Tensor mask = ops::gt(x, 0.5);
  rows.push_back(measure(
      "masked_select half of 1e6", [&] { ops::masked_select(x, mask); }, floor));
}

// Prints the nanoseconds of the kernel alone on a tiny input.
void print_small() {
  const Tensor x = uniform({8, 8});
  Tensor out = empty({}, DType::kFloat32, Device{});
  constexpr int kRounds = 10'000;
  double best = 1e9;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kRounds; ++i) cpu::sum(x, std::nullopt, false, std::nullopt, out);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count() / kRounds);
  }
  std::printf("sum of 8x8, the kernel alone: %.0f ns\n", best * 1e9);
}

void print(const std::vector<Row>& rows, bool json) {
  if (!json) std::printf("%-32s %10s %10s %7s   (%d threads, ms)\n", "", "ours", "floor", "ratio", num_threads());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    const char* format = json ? "%s{\"what\": \"%s\", \"ms\": %.4f, \"floor_ms\": %.4f, \"ratio\": %.3f}%s\n"
                              : "%s%-32s %10.3f %10.3f %7.2f%s\n";
    std::printf(format, json && i == 0 ? "[" : "", r.what.c_str(), r.ours * 1e3, r.floor * 1e3, r.ours / r.floor,
                !json                  ? ""
                : i + 1 == rows.size() ? "]"
                                       : ",");
  }
}

}  // namespace
}  // namespace tt

int main(int argc, char** argv) {
  using namespace tt;
  bool json = false;
  set_num_threads(1);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0)
      json = true;
    else
      set_num_threads(std::atoi(argv[i]));
  }
  cpu::register_backend(Dispatcher::instance());
  std::vector<Row> rows;
  bench_reductions(rows);
  bench_orders(rows);
  print(rows, json);
  if (!json) print_small();
}
