#include "tests/cuda/simulated/compiler.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "kernels/cuda/launch/launch_host.h"

namespace tt::cuda {
namespace {

constexpr const char* kPrelude = R"(
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include "engine/schema/half.h"
#include "kernels/common/math/exponential.h"
#include "kernels/common/math/vector_math.h"
using tt::BFloat16;
using tt::Half;
static float widen(Half value) { return value; }
static float widen(BFloat16 value) { return value; }
struct Index { unsigned x; };
static constexpr Index gridDim{3}, blockDim{2};
static Index blockIdx, threadIdx;
#define TT_DEVICE inline
#define TT_KERNEL(name)                                   \
  static void run_thread(const Parameters& p);            \
  extern "C" void name(const Parameters& p) {             \
    for (unsigned i = gridDim.x * blockDim.x; i-- > 0;) { \
      blockIdx.x = i / blockDim.x;                        \
      threadIdx.x = i % blockDim.x;                       \
      run_thread(p);                                      \
    }                                                     \
  }                                                       \
  static void run_thread(const Parameters& p)
)";

std::atomic<int> compilations{0};

class HostCompiler final : public Compiler {
 public:
  bool available() override { return std::getenv("TELETENSOR_SIMULATED_CXX") != nullptr; }

  KernelHandle compile(const std::string& source) override {
    const char* cxx = std::getenv("TELETENSOR_SIMULATED_CXX");
    std::string folder = (std::filesystem::temp_directory_path() / "fused.XXXXXX").string();
    check(mkdtemp(folder.data()) != nullptr, "cannot create a temporary folder for compilation");
    std::ofstream(folder + "/fused.cc") << kPrelude << source;
    const std::string command = absl::StrCat(cxx, " -std=c++20 -O1 -fwrapv -w -shared -fPIC -I" TT_SOURCE_DIR " -o ",
                                             folder, "/fused.so ", folder, "/fused.cc");
    const bool compiled = std::system(command.c_str()) == 0;
    void* library = compiled ? dlopen((folder + "/fused.so").c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    std::filesystem::remove_all(folder);
    check(library != nullptr, "the source does not compile");
    ++compilations;
    return dlsym(library, "fused");
  }

  void launch(KernelHandle kernel, int64_t, int, void* parameters, size_t bytes, StreamHandle stream) override {
    // Aligned like the struct; a std::string might not be.
    auto copy = std::make_shared<std::vector<uint64_t>>((bytes + 7) / 8);
    std::memcpy(copy->data(), parameters, bytes);
    enqueue(stream, [=] { reinterpret_cast<void (*)(const void*)>(kernel)(copy->data()); });
  }
};

}  // namespace

int simulated_compilations() { return compilations; }

std::unique_ptr<Compiler> make_compiler() { return std::make_unique<HostCompiler>(); }

}  // namespace tt::cuda
