// Selects the instruction set whose block table this machine uses.

#include <cstdlib>
#include <string_view>

#include "engine/schema/error.h"
#include "kernels/cpu/iteration/block.h"
#include "kernels/cpu/iteration/instruction_sets.h"
#include "kernels/cpu/iteration/isa.h"

namespace tt::cpu {

namespace baseline {
BlockTable make_table();
}
#if TT_COMPILE_AVX2
namespace avx2 {
BlockTable make_table();
}
#endif
#if TT_COMPILE_AVX512
namespace avx512 {
BlockTable make_table();
}
#endif

namespace {

struct Candidate {
  std::string_view name;
  BlockTable (*make)();
  bool (*runs_here)();
};

// The instruction sets, fastest first.
constexpr Candidate kCandidates[] = {
#if TT_COMPILE_AVX512
    {"avx512", &avx512::make_table,
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
     }},
#endif
#if TT_COMPILE_AVX2
    {"avx2", &avx2::make_table,
     [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); }},
#endif
    {"baseline", &baseline::make_table, [] { return true; }},
};

BlockTable select_table() {
  const char* wanted = std::getenv("TELETENSOR_CPU_ISA");
  for (const Candidate& c : kCandidates) {
    if (c.runs_here() && (!wanted || wanted == c.name)) return c.make();
  }
  fail(ErrorKind::kValue,
       "TELETENSOR_CPU_ISA must be an instruction set that this machine supports and this build contains, got ",
       wanted);
}

}  // namespace

bool allows_avx512() {
  const char* wanted = std::getenv("TELETENSOR_CPU_ISA");
  return !wanted || std::string_view(wanted) == "avx512";
}

bool allows_avx2() {
  const char* wanted = std::getenv("TELETENSOR_CPU_ISA");
  return !wanted || std::string_view(wanted) != "baseline";
}

const BlockTable& blocks() {
  static const BlockTable table = select_table();
  return table;
}

}  // namespace tt::cpu
