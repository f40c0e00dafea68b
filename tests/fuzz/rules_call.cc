#include "tests/fuzz/rules_call.h"

#include <algorithm>
#include <ctime>

#include "engine/schema/error.h"
#include "tests/fuzz/operator_arguments.h"

namespace tt::fuzz {
namespace {

constexpr double kMaxSeconds = 2;         // maximum processor time; rules take microseconds
constexpr size_t kMaxOutputs = 1u << 18;  // the maximum number of chunks of a split

std::string fault(const OperatorArguments& call, const std::string& what) { return call.to_string() + ": " + what; }

// Properties that later calls rely on: byte size and offset of the last element fit into int64_t.
std::string find_fault(const TensorMeta& meta) {
  if (meta.sizes.size() != meta.strides.size()) return "the number of strides differs from the number of sizes";
  if (meta.dim() > kMaxDims) return "more dimensions than allowed";
  if (!is_valid(static_cast<int64_t>(meta.dtype))) return "no dtype";
  const auto item = static_cast<__int128>(item_size(meta.dtype));
  const __int128 most = INT64_MAX;
  __int128 bytes = item, reach = meta.offset;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] < 0 || meta.strides[d] < 0) return "a negative size or stride";
    bytes *= std::max<int64_t>(meta.sizes[d], 1);
    if (bytes > most) return "the size in bytes exceeds int64_t";
    reach += static_cast<__int128>(std::max<int64_t>(meta.sizes[d], 1) - 1) * meta.strides[d];
    if (reach * item > most) return "the offset of the last element exceeds int64_t";
  }
  if (meta.offset < 0) return "a negative offset";
  return "";
}

}  // namespace

std::string call_rules(const uint8_t* data, size_t size) {
  ByteReader bytes(data, size);
  const Op& op = draw_op(bytes);
  OperatorArguments call(op, bytes, TensorLimits{});
  const std::clock_t start = std::clock();
  Inference inference;
  try {
    op.check_args(call.args());
    infer(op, call.args(), true, &inference);
    if (inference.outputs.size() > kMaxOutputs) return fault(call, "too many results");
    for (const TensorMeta& meta : inference.outputs) {
      if (std::string what = find_fault(meta); !what.empty()) return fault(call, what + " in " + describe(meta));
    }
    // In place and with out=: the first result goes to a tensor of the caller.
    if (!inference.outputs.empty()) {
      const TensorMeta target = call.draw_meta();
      check_out_variant(op, inference.outputs[0], target, false, true);
      check_out(op, inference.outputs[0], target);
    }
  } catch (const Error& error) {
    if (error.message().empty()) return fault(call, "an Error without a message");
  } catch (const std::exception& error) {
    return fault(call, std::string("an exception other than Error: ") + error.what());
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (seconds > kMaxSeconds) return fault(call, "took " + std::to_string(seconds) + " s");
  return "";
}

}  // namespace tt::fuzz
