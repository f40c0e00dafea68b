// Compares our own matrix products (tiled_gemm, gemv) with oneDNN (float32) and OpenBLAS (float32, float64), by size
// class and layout. The results determine which implementation kernels/cpu/blas/product.cc and gemm.cc call.
//
// Prints GFLOP/s and the ratio ours / library; the optional argument is the number of threads (1 by default).
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/device/parallel.h"
#include "kernels/cpu/blas/gemm.h"
#include "kernels/cpu/blas/gemv.h"
#include "kernels/cpu/blas/routines.h"
#include "kernels/cpu/cpu.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace tt::cpu {
namespace {

using dnnl::memory;
using Clock = std::chrono::steady_clock;

struct Shape {
  int64_t m, n, k;
  bool a_transposed, b_transposed;
};

template <typename T>
std::vector<T> filled(int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(int(i * 7919 % 2001) - 1000) / 1000;
  return values;
}

// Measures both alternately and prints the rates of the fastest runs: on a shared machine the minimum is reproducible.
void measure(const Shape& s, const char* library, const std::function<void()>& ours,
             const std::function<void()>& theirs) {
  const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k);
  const int repeats = std::max(1, static_cast<int>(2e5 / flops));  // small products: several per measurement
  const auto once = [&](const std::function<void()>& f) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < repeats; ++i) f();
    return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
  };
  double best_ours = 1e9, best_theirs = 1e9, spent = 0;
  for (int round = 0; round < 2000 && (round < 10 || spent < 0.2); ++round) {
    const double a = once(ours), b = once(theirs);
    spent += (a + b) * repeats;
    if (round < 3) continue;
    best_ours = std::min(best_ours, a);
    best_theirs = std::min(best_theirs, b);
  }
  std::printf("%-9s %5ld x %5ld x %5ld  %c%c %10.1f %10.1f %8.2f\n", library, long(s.m), long(s.n), long(s.k),
              s.a_transposed ? 't' : 'n', s.b_transposed ? 't' : 'n', flops / best_ours / 1e9,
              flops / best_theirs / 1e9, best_theirs / best_ours);
}

template <typename T>
Gemm problem(const Shape& s, DType dtype, const std::vector<T>& a, const std::vector<T>& b, std::vector<T>& c) {
  const Matrix left{a.data(), s.a_transposed ? 1 : s.k, s.a_transposed ? s.m : 1};
  const Matrix right{b.data(), s.b_transposed ? 1 : s.n, s.b_transposed ? s.k : 1};
  return Gemm{dtype, s.m, s.n, s.k, left, right, c.data()};
}

void run_ours(const Gemm& g) { is_gemv(g) ? gemv(g) : tiled_gemm(g); }

void compare_with_onednn(const Shape& s) {
  const std::vector<float> a = filled<float>(s.m * s.k), b = filled<float>(s.k * s.n);
  std::vector<float> c(static_cast<size_t>(s.m * s.n)), d = c;
  const Gemm g = problem(s, DType::kFloat32, a, b, c);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto type = memory::data_type::f32;
  const memory::desc a_desc({s.m, s.k}, type, memory::dims{g.a.row_stride, g.a.column_stride});
  const memory::desc b_desc({s.k, s.n}, type, memory::dims{g.b.row_stride, g.b.column_stride});
  const memory::desc c_desc({s.m, s.n}, type, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc pd({a_desc, b_desc, c_desc}, engine);
  const dnnl::matmul primitive(pd);
  const std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, memory(a_desc, engine, const_cast<float*>(a.data()))},
      {DNNL_ARG_WEIGHTS, memory(b_desc, engine, const_cast<float*>(b.data()))},
      {DNNL_ARG_DST, memory(c_desc, engine, d.data())}};
  measure(
      s, "oneDNN", [&] { run_ours(g); }, [&] { primitive.execute(stream, arguments); });
}

template <typename T>
void compare_with_openblas(const Shape& s, const char* library) {
  const std::vector<T> a = filled<T>(s.m * s.k), b = filled<T>(s.k * s.n);
  std::vector<T> c(static_cast<size_t>(s.m * s.n)), d = c;
  const Gemm g = problem(s, sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64, a, b, c);
  // Row-major c = a b is column-major c^T = b^T a^T.
  const int m = int(s.n), n = int(s.m), k = int(s.k), ldb = int(s.b_transposed ? s.k : s.n),
            lda = int(s.a_transposed ? s.m : s.k);
  const char tb = s.b_transposed ? 'T' : 'N', ta = s.a_transposed ? 'T' : 'N';
  measure(
      s, library, [&] { run_ours(g); },
      [&] { lapack::gemm(tb, ta, m, n, k, b.data(), ldb, a.data(), lda, d.data(), m); });
}

}  // namespace
}  // namespace tt::cpu

int main(int argc, char** argv) {
  using namespace tt;
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  set_num_threads(threads);
  omp_set_num_threads(threads);
  std::printf("%-9s %5s   %5s   %5s  %2s %10s %10s %8s   (%d threads, GFLOP/s)\n", "library", "m", "n", "k", "", "ours",
              "library", "ratio", threads);
  std::vector<cpu::Shape> shapes;
  for (int64_t n : {4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 128, 256, 512, 1024}) {
    for (bool tb : {false, true}) shapes.push_back({n, n, n, false, tb});
  }
  for (auto [m, n, k] : {std::tuple{1, 256, 256},
                         {1, 1024, 1024},
                         {1, 4096, 1024},
                         {1024, 1, 1024},
                         {128, 10, 256},
                         {128, 512, 784},
                         {16, 16, 1024},
                         {1024, 16, 16},
                         {2, 64, 64},
                         {8, 512, 512}}) {
    for (bool tb : {false, true}) shapes.push_back({m, n, k, false, tb});
  }
  for (int64_t n : {16, 32, 256}) shapes.push_back({n, n, n, true, false});
  for (const cpu::Shape& s : shapes) cpu::compare_with_onednn(s);
  for (const cpu::Shape& s : shapes) cpu::compare_with_openblas<float>(s, "sgemm");
  for (const cpu::Shape& s : shapes) cpu::compare_with_openblas<double>(s, "dgemm");
  return 0;
}
