// Fuzz target: an engine's list of custom operators with arbitrary contents is read by a client, or refused. An
// accepted declaration infers results of valid sizes, or refuses the arguments, and its own text is read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schema/custom_operator.h"
#include "engine/schema/custom_query.h"
#include "engine/schema/error.h"
#include "tests/fuzz/require.h"

namespace {

void call(const tt::CustomOperator& op) {
  tt::TensorMeta x;
  x.sizes = {2, 3};
  x.strides = {3, 1};
  const int64_t numbers[] = {1, 2};
  const double reals[] = {0.5};
  const tt::TensorMeta* list[] = {&x};
  std::vector<tt::Arg> args;
  for (const tt::Param& param : op.op().params) {
    switch (param.type) {
      case tt::ParamType::kTensor: args.emplace_back(&x); break;
      case tt::ParamType::kTensors: args.emplace_back(absl::MakeConstSpan(list)); break;
      case tt::ParamType::kInts: args.emplace_back(absl::MakeConstSpan(numbers)); break;
      case tt::ParamType::kFloats: args.emplace_back(absl::MakeConstSpan(reals)); break;
      case tt::ParamType::kString: args.emplace_back(std::string_view("text")); break;
      case tt::ParamType::kBool: args.emplace_back(true); break;
      case tt::ParamType::kFloat: args.emplace_back(1.5); break;
      default: args.emplace_back(int64_t{3});
    }
  }
  op.op().check_args(args);
  tt::Inference out;
  op.infer(args, &out);
  tt::fuzz::require(out.outputs.size() == static_cast<size_t>(op.op().num_outputs), "a result per declared one");
  for (const tt::TensorMeta& meta : out.outputs) {
    for (int64_t size : meta.sizes) tt::fuzz::require(size >= 0, "sizes are not negative");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const tt::NumberedDeclaration& one : tt::decode_declarations(text)) {
      try {
        call(tt::CustomOperator(one.declaration));
      } catch (const tt::Error&) {
      }
    }
  } catch (const tt::Error&) {
  }
  try {
    tt::decode_results(text);
  } catch (const tt::Error&) {
  }
  return 0;
}
