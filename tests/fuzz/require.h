// require: what a fuzz target checks beyond the sanitizers. Aborts with the reason, which the fuzzer records.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tt::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz target: this does not hold: %s\n", what);
  std::abort();
}

}  // namespace tt::fuzz
