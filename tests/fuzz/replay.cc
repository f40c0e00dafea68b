// Runs a fuzz target without libFuzzer: on kept inputs, then on random mutations of them and random bytes.
//
// usage: NAME_fuzz [--runs N] [--seconds S] [--seed S] FILE|FOLDER...
//
// Used by the ordinary test suite, with any compiler. Has no coverage guidance: it reproduces earlier findings, and
// runs many inputs at the speed of the release build. A crash prints its run number, which the same seed reproduces,
// and its input.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                                unsigned seed);

// Sets, inserts, removes or repeats bytes; returns the new size.
static size_t change(uint8_t* data, size_t size, size_t max_size, unsigned seed);

namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kMaxBytes = 4096;
std::mt19937_64 random_numbers{1};
long long run_number = -1;  // number of the current random input; -1: a kept input
std::string current_file;
Bytes current_input;

// Writes the input in hexadecimal, from which a file for the corpus is made by `xxd -r -p`.
void print_input() {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const uint8_t byte : current_input) {
    const char digits[] = {kDigits[byte >> 4], kDigits[byte & 15]};
    [[maybe_unused]] ssize_t written = write(2, digits, sizeof digits);
  }
}

extern "C" void report(int signal) {
  char text[512];
  const int size = std::snprintf(text, sizeof text, "\nsignal %d in run %lld%s%s\n", signal, run_number,
                                 run_number < 0 ? ", file " : "", run_number < 0 ? current_file.c_str() : "");
  [[maybe_unused]] ssize_t written = write(2, text, static_cast<size_t>(size));
  print_input();
  written = write(2, "\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const Bytes& input) {
  current_input = input;
  const Bytes copy(input);  // exact size, so that sanitizers detect reads past the end
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

std::vector<std::string> files_of(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};  // a target without kept inputs
  if (!std::filesystem::is_directory(path)) return {path.native()};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path().native());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Bytes read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Bytes mutated(const Bytes& input) {
  Bytes buffer(kMaxBytes);
  const size_t size = std::min(input.size(), kMaxBytes);
  std::copy_n(input.begin(), size, buffer.begin());
  const auto seed = static_cast<unsigned>(random_numbers());
  buffer.resize(LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(buffer.data(), size, kMaxBytes, seed)
                                        : change(buffer.data(), size, kMaxBytes, seed));
  return buffer;
}

Bytes random_input() {
  Bytes bytes(random_numbers() % 128);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_numbers());
  return bytes;
}

// A mutation of an input; every other time random bytes if they may be valid: few mutations of a few bytes lead far
// from the kept inputs without coverage guidance.
Bytes next_input(const std::vector<Bytes>& inputs) {
  if (!LLVMFuzzerCustomMutator && random_numbers() % 2 == 0) return random_input();
  return mutated(inputs[random_numbers() % inputs.size()]);
}

}  // namespace

static size_t change(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  for (unsigned i = 0, count = 1 + random() % 4; i < count; ++i) {
    const size_t at = size == 0 ? 0 : random() % size;
    switch (random() % 4) {
      case 0:
        if (size > 0) data[at] = static_cast<uint8_t>(random());
        break;
      case 1:
        if (size == max_size) break;
        std::memmove(data + at + 1, data + at, size - at);
        data[at] = static_cast<uint8_t>(random());
        ++size;
        break;
      case 2:
        if (size == 0) break;
        std::memmove(data + at, data + at + 1, size - at - 1);
        --size;
        break;
      case 3: {
        const size_t count_bytes = std::min<size_t>({1 + random() % 16, size - at, max_size - size});
        std::memmove(data + at + count_bytes, data + at, size - at);
        size += count_bytes;
        break;
      }
    }
  }
  return size;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  return change(data, size, max_size, static_cast<unsigned>(random_numbers()));
}

int main(int argc, char** argv) {
  long long runs = 0;
  double seconds = 1e9;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--runs") == 0 && has_value) {
      runs = std::atoll(argv[++i]);
    } else if (std::strcmp(argv[i], "--seconds") == 0 && has_value) {
      seconds = std::atof(argv[++i]);
      if (runs == 0) runs = INT64_MAX;
    } else if (std::strcmp(argv[i], "--seed") == 0 && has_value) {
      random_numbers.seed(std::strtoull(argv[++i], nullptr, 10));
    } else {
      for (std::string& file : files_of(argv[i])) files.push_back(std::move(file));
    }
  }
  for (int signal : {SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGBUS}) std::signal(signal, &report);
  if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
  std::vector<Bytes> inputs;
  for (const std::string& file : files) {
    current_file = file;
    run(inputs.emplace_back(read_file(file)));
  }
  if (inputs.empty()) inputs.emplace_back(64, uint8_t{0});
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (run_number = 0; run_number < runs && std::chrono::steady_clock::now() < end; ++run_number) {
    run(next_input(inputs));
  }
  std::printf("%lld inputs\n", static_cast<long long>(files.size()) + run_number);
  return 0;
}
