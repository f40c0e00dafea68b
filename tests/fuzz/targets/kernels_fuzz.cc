// libFuzzer target: operators on small CPU tensors with random arguments.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/kernels_call.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = tt::fuzz::call_kernels(data, size);
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
