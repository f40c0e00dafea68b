// Runs a fuzzer's entry on a fixed set of inputs, without libFuzzer. TT_FUZZ_INPUTS=<count> goes on for longer;
// TT_FUZZ_INPUT=<number> runs one alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kInputs = 500;
constexpr std::chrono::seconds kLongest{10};  // of a slow machine's test; no limit where a count is given

void run_input(int number) {
  std::mt19937_64 random(static_cast<uint64_t>(number));
  std::vector<uint8_t> bytes(random() % 600);
  // Small numbers in some inputs, any in others.
  const uint64_t most = number % 3 == 0 ? 16 : 256;
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<uint8_t>(random() % most); });
  EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
}

TEST(SeededInputs, EndWithoutACrash) {
  if (const char* one = std::getenv("TT_FUZZ_INPUT")) return run_input(std::atoi(one));
  const char* more = std::getenv("TT_FUZZ_INPUTS");
  const int inputs = more ? std::atoi(more) : kInputs;
  const auto end = std::chrono::steady_clock::now() + kLongest;
  int number = 0;
  for (; number < inputs && (more || std::chrono::steady_clock::now() < end); ++number) run_input(number);
  std::cout << number << " inputs\n";
}

}  // namespace
