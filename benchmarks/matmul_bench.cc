// Matrix products and convolutions through the dispatcher, compared with oneDNN called directly in its preferred
// layouts, alternating in one process. Prints GFLOP/s and the ratio, or JSON with --json. A number as argument sets the
// threads.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/ops.h"
#include "kernels/cpu/cpu.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace tt {
namespace {

using dnnl::memory;
using Clock = std::chrono::steady_clock;

struct Row {
  std::string what;
  double flops;
  double ours, direct;  // seconds
};

void fill(float* data, int64_t n) {
  for (int64_t i = 0; i < n; ++i) data[i] = static_cast<float>(i * 7919 % 2001 - 1000) / 1000;
}
Tensor filled(Sizes sizes) {
  Tensor t = empty(sizes, DType::kFloat32, Device{});
  fill(t.data_as<float>(), t.numel());
  return t;
}

// Minimum time of many alternating runs of both; on a shared machine the minimum is reproducible.
Row measure(std::string what, double flops, const std::function<void()>& ours, const std::function<void()>& direct) {
  Row row{std::move(what), flops, 1e9, 1e9};
  const auto once = [](const std::function<void()>& f) {
    const Clock::time_point start = Clock::now();
    f();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double spent = 0;
  for (int round = 0; round < 400 && (round < 10 || spent < 0.6); ++round) {
    const double a = once(ours), b = once(direct);
    spent += a + b;
    if (round < 3) continue;  // warm-up: primitives are created, weights packed, caches filled
    row.ours = std::min(row.ours, a);
    row.direct = std::min(row.direct, b);
  }
  return row;
}

// oneDNN with a separate engine, stream and memory.
class Direct {
 public:
  memory make(const memory::desc& desc) {
    memory m(desc, engine_);
    fill(static_cast<float*>(m.get_data_handle()), static_cast<int64_t>(desc.get_size() / sizeof(float)));
    return m;
  }
  const dnnl::engine& engine() const { return engine_; }
  void run(const dnnl::primitive& primitive, const std::unordered_map<int, memory>& arguments) {
    primitive.execute(stream_, arguments);
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
};

Row bench_matmul(Direct& direct, int64_t m, int64_t n, int64_t k) {
  const Tensor a = filled({m, k}), b = filled({k, n});
  const auto type = memory::data_type::f32;
  using Tag = memory::format_tag;
  dnnl::matmul::primitive_desc pd({{{m, k}, type, Tag::ab}, {{k, n}, type, Tag::any}, {{m, n}, type, Tag::ab}},
                                  direct.engine());
  const dnnl::matmul primitive(pd);
  const std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, direct.make(pd.src_desc())},
                                                  {DNNL_ARG_WEIGHTS, direct.make(pd.weights_desc())},
                                                  {DNNL_ARG_DST, direct.make(pd.dst_desc())}};
  char what[64];
  std::snprintf(what, sizeof what, "matmul %ldx%ldx%ld", long(m), long(n), long(k));
  return measure(
      what, 2.0 * double(m) * double(n) * double(k), [&] { ops::matmul(a, b); },
      [&] { direct.run(primitive, arguments); });
}

Row bench_convolution(Direct& direct, int64_t images, int64_t channels, int64_t side) {
  const Sizes x_sizes{images, channels, side, side}, w_sizes{channels, channels, 3, 3};
  const Tensor x = filled(x_sizes), w = filled(w_sizes);
  const memory::dims x_dims(x_sizes.begin(), x_sizes.end()), w_dims(w_sizes.begin(), w_sizes.end()), one{1, 1};
  const auto any = [](const memory::dims& dims) {
    return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
  };
  dnnl::convolution_forward::primitive_desc pd({dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                                any(x_dims), any(w_dims), any(x_dims), one, one, one},
                                               direct.engine());
  const dnnl::convolution_forward primitive(pd);
  const std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, direct.make(pd.src_desc())},
                                                  {DNNL_ARG_WEIGHTS, direct.make(pd.weights_desc())},
                                                  {DNNL_ARG_DST, direct.make(pd.dst_desc())}};
  const int64_t ones[] = {1, 1};
  char what[64];
  std::snprintf(what, sizeof what, "conv 3x3 %ldx%ldx%ldx%ld", long(images), long(channels), long(side), long(side));
  return measure(
      what, 2.0 * double(images * channels * channels * side * side) * 9,
      [&] { ops::convolution(x, w, {}, ones, ones, ones, 1); }, [&] { direct.run(primitive, arguments); });
}

void print(const std::vector<Row>& rows, bool json) {
  if (!json) std::printf("%-26s %10s %10s %7s   (%d threads, GFLOP/s)\n", "", "ours", "direct", "ratio", num_threads());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    const double ours = r.flops / r.ours / 1e9, direct = r.flops / r.direct / 1e9;
    if (json) {
      std::printf("%s{\"what\": \"%s\", \"threads\": %d, \"gflops\": %.1f, \"direct\": %.1f, \"ratio\": %.3f}%s\n",
                  i == 0 ? "[" : " ", r.what.c_str(), num_threads(), ours, direct, ours / direct,
                  i + 1 == rows.size() ? "]" : ",");
    } else {
      std::printf("%-26s %10.1f %10.1f %7.3f\n", r.what.c_str(), ours, direct, ours / direct);
    }
  }
}

}  // namespace
}  // namespace tt

int main(int argc, char** argv) {
  using namespace tt;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0)
      json = true;
    else
      set_num_threads(std::atoi(argv[i]));
  }
  cpu::register_backend(Dispatcher::instance());
  PoolLease lease;  // oneDNN called directly uses the same threads as teletensor
  Direct direct;
  std::vector<Row> rows;
  for (int64_t n : {8, 64, 256, 512, 1024}) rows.push_back(bench_matmul(direct, n, n, n));
  rows.push_back(bench_matmul(direct, 128, 512, 784));
  rows.push_back(bench_matmul(direct, 1, 4096, 4096));
  for (int64_t images : {1, 8}) {
    for (auto [channels, side] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
      rows.push_back(bench_convolution(direct, images, channels, side));
    }
  }
  print(rows, json);
  return 0;
}
