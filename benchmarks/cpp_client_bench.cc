// Processor time of the C++ interface on the caller's thread: `x + y`, `x.add_(y)`, `x.matmul(y)` and a layer, in
// bursts that the engine's queue accepts without blocking the caller. Prints a table, or JSON with --json.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "teletensor/teletensor.h"

namespace teletensor {
namespace {

// Processor time of the calling thread, which other processes do not change much.
double seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double call_ns(const std::function<void(int)>& burst) {
  constexpr int kBurst = 2000;
  std::vector<double> rounds;
  for (int round = 0; round < 200; ++round) {
    const double start = seconds();
    burst(kBurst);
    rounds.push_back((seconds() - start) / kBurst * 1e9);
    synchronize();
  }
  return median(rounds);
}

void run(bool json) {
  const Tensor x = ones({8, 8}), y = ones({8, 8});
  const Tensor w = ones({8, 8}, requires_grad());
  nn::Linear layer(8, 8);
  const std::pair<const char*, double> rows[] = {
      {"x + y", call_ns([&](int n) {
         for (int i = 0; i < n; ++i) x + y;
       })},
      {"x + 1", call_ns([&](int n) {
         for (int i = 0; i < n; ++i) x + 1;
       })},
      {"x.add_(y)", call_ns([&](int n) {
         for (int i = 0; i < n; ++i) x.add_(y);
       })},
      {"x.matmul(y)", call_ns([&](int n) {
         for (int i = 0; i < n; ++i) x.matmul(y);
       })},
      {"w + y, recorded for backward", call_ns([&](int n) {
         for (int i = 0; i < n; ++i) w + y;
       })},
      {"nn::Linear(8, 8), recorded", call_ns([&](int n) {
         for (int i = 0; i < n; ++i) layer(x);
       })},
  };
  if (!json) std::printf("%-32s %10s\n", "call", "ns");
  bool is_first = true;
  for (const auto& [what, ns] : rows) {
    if (json) {
      std::printf("%s{\"what\": \"%s\", \"ours\": %.4g, \"unit\": \"ns\"}", is_first ? "[" : ",\n ", what, ns);
    } else {
      std::printf("%-32s %10.1f\n", what, ns);
    }
    is_first = false;
  }
  if (json) std::printf("]\n");
}

}  // namespace
}  // namespace teletensor

int main(int argc, char** argv) {
  teletensor::run(argc > 1 && std::string(argv[1]) == "--json");
  return 0;
}
