// libFuzzer target: shape and dtype rules with random arguments.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/rules_call.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = tt::fuzz::call_rules(data, size);
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
