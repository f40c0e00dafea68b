// require: checks of fuzz targets in addition to the sanitizers'. Aborts with the message, which the fuzzer records.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tt::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz target: failed requirement: %s\n", what);
  std::abort();
}

}  // namespace tt::fuzz
