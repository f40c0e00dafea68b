#include "kernels/cpu/blas/openblas_core.h"

#include <algorithm>
#include <cstdlib>
#include <string>

// Functions of OpenBLAS builds for several processors. Null with others.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
[[gnu::weak]] char* gotoblas_corename();
}

namespace tt::cpu {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";
// Kernels for processors without AVX2. OpenBLAS also reports them in other letter cases.
constexpr std::string_view kWithoutAvx2[] = {
    "katmai", "coppermine",  "northwood", "prescott",  "banias",     "atom",         "core2",
    "penryn", "dunnington",  "nehalem",   "athlon",    "opteron",    "opteron_sse3", "barcelona",
    "nano",   "sandybridge", "bobcat",    "bulldozer", "piledriver", "steamroller",  "unknown"};

VectorUnits vector_units() {
  return {__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
          __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
              __builtin_cpu_supports("avx512vl")};
}

}  // namespace

std::string_view better_openblas_core(std::string_view detected, VectorUnits units) {
  std::string name(detected);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  if (!units.avx2 || std::find(std::begin(kWithoutAvx2), std::end(kWithoutAvx2), name) == std::end(kWithoutAvx2)) {
    return {};
  }
  return units.avx512 ? "SkylakeX" : "Haswell";
}

std::string_view openblas_core() {
  const char* const name = gotoblas_corename ? gotoblas_corename() : nullptr;
  return name ? name : std::string_view();
}

void choose_openblas_core() {
  if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit || !gotoblas_corename || std::getenv(kVariable)) return;
  const std::string better(better_openblas_core(openblas_core(), vector_units()));
  if (better.empty()) return;
  // OpenBLAS reads the variable when it initialises its table of kernels.
  setenv(kVariable, better.c_str(), 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(kVariable);
}

}  // namespace tt::cpu
