#include "engine/composites/run_program.h"

#include <cstring>
#include <string>

#include "engine/session/context.h"
#include "engine/session/programs.h"

namespace tt::composites {
namespace {

// The Program stays valid if the run drops its number.
Programs::Entry program_of(int64_t number) { return Context::current().services.get<Programs>().get(number); }

}  // namespace

Tensors run_defined(const Tensors& inputs, const Tensors& written, int64_t number) {
  return program_of(number)->run({inputs, written});
}

Tensor explain_defined(const Tensors& inputs, const Tensors& written, int64_t number) {
  const std::string text = program_of(number)->explain({inputs, written});
  const Tensor bytes = empty({static_cast<int64_t>(text.size())}, DType::kUInt8, Device{});
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace tt::composites
