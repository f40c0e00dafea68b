#include "engine/composites/run_program.h"

#include <cstring>
#include <string>

#include "engine/session/context.h"
#include "engine/session/programs.h"

namespace tt::composites {
namespace {

Programs& programs() { return Context::current().services.get<Programs>(); }

}  // namespace

Tensors run_defined(const Tensors& inputs, const Tensors& written, int64_t number) {
  const Programs::Entry program = programs().get(number);  // stays valid if the run drops its number
  Tensors outputs = program->run({inputs, written});
  programs().count_again(number);
  return outputs;
}

Tensor explain_defined(const Tensors& inputs, const Tensors& written, int64_t number) {
  const std::string text = programs().get(number)->explain({inputs, written});
  const Tensor bytes = empty({static_cast<int64_t>(text.size())}, DType::kUInt8, Device{});
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace tt::composites
