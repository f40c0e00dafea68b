// Fuzz target: a model's description is parsed, and its entry is run six times with zeros if its inputs are small.
//
// Whatever the file contains, it is refused or read, and afterwards the engine holds as much memory as before.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "engine/dispatch/dispatcher.h"
#include "engine/session/context.h"
#include "server/serving/model_file.h"
#include "tests/fuzz/require.h"
#include "tests/server/engine_memory.h"

namespace {

using tt::server::ModelEntry;
using tt::server::ModelFile;

constexpr int64_t kMaxElements = 1 << 12;
constexpr int kRuns = 6;  // plans are made in the fourth run

// The sizes of an input, with 2 for those that a run decides; empty if it would be large.
bool sizes_of(const tt::server::ModelPort& port, tt::Sizes* sizes) {
  int64_t elements = 1;
  for (const auto& dim : port.dims) {
    const int64_t size = dim.size < 0 ? 2 : dim.size;
    if (size > kMaxElements || (elements *= std::max<int64_t>(size, 1)) > kMaxElements) return false;
    sizes->push_back(size);
  }
  return true;
}

void run(const ModelEntry& entry) {
  if (!entry.weights.empty() || !entry.states.empty()) return;
  std::vector<tt::Tensor> inputs;
  for (const auto& port : entry.inputs) {
    tt::Sizes sizes;
    if (!sizes_of(port, &sizes)) return;
    inputs.push_back(tt::empty(sizes, port.dtype, tt::Device()));
    const size_t bytes = static_cast<size_t>(inputs.back().numel()) * tt::item_size(port.dtype);
    if (bytes != 0) std::memset(inputs.back().data(), 0, bytes);
  }
  std::vector<const tt::TensorMeta*> metas;
  for (const tt::Tensor& input : inputs) metas.push_back(input.get());
  entry.check_requirements(metas);
  for (int i = 0; i < kRuns; ++i) entry.program->run({inputs, {}});
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tt::server::testing::start_engine();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 64 << 10) return 0;
  const uint64_t before = tt::server::testing::engine_bytes();
  {
    tt::Context context;
    context.account = std::make_shared<tt::Account>("fuzz", 4 << 20);
    context.grad_enabled = false;
    {
      const tt::ContextScope scope(&context);
      try {
        const ModelFile file = tt::server::parse_model(std::string(reinterpret_cast<const char*>(data), size));
        for (const ModelEntry& entry : file.entries) run(entry);
      } catch (const tt::Error&) {  // refused
      }
    }
    context.close();
  }
  tt::fuzz::require(tt::server::testing::engine_bytes() == before, "the model's memory was released");
  return 0;
}
