#include "engine/session/window.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/program/passes/fuse_convolutions.h"
#include "engine/program/passes/fuse_pointwise.h"
#include "engine/program/passes/fuse_regions.h"
#include "engine/program/passes/keep_channels_last.h"
#include "engine/program/passes/merge_equal.h"
#include "engine/program/passes/peak_memory.h"
#include "engine/program/passes/remove_identities.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/writes.h"
#include "engine/program/program_run.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/program_types.h"
#include "engine/tensor/tensor.h"

namespace tt {
namespace {

constexpr bool kRecords = true;  // instructions say whether they record
// Estimated nanoseconds that a replacement saves for each call that is not executed, the bytes for which it saves one,
// the nanoseconds that it needs itself, and those for each call that it replaces.
constexpr int64_t kNsPerCall = 650, kBytesPerNs = 16, kNsToReplace = 700, kNsToReplaceCall = 150;

bool is_on_cpu(const TensorMeta& meta) { return meta.device.type == DeviceType::kCPU; }

// Whether a result is recorded for backward, or is on another device than the CPU.
bool is_excluded(const Program& program, const ProgramTypes& types) {
  return std::any_of(program.instructions().begin(), program.instructions().end(), [&](const Instruction& call) {
    return std::any_of(call.results.begin(), call.results.end(),
                       [&](Slot slot) { return types.of(slot).requires_grad || !is_on_cpu(types.of(slot)); });
  });
}

// The names that the Program defines and neither drops nor returns.
std::vector<Slot> names_left(const Program& program) {
  absl::flat_hash_set<Slot> ended(program.outputs().begin(), program.outputs().end());
  for (const Instruction& call : program.instructions()) ended.insert(call.release.begin(), call.release.end());
  std::vector<Slot> left;
  for (const Instruction& call : program.instructions()) {
    std::copy_if(call.results.begin(), call.results.end(), std::back_inserter(left),
                 [&](Slot slot) { return !ended.contains(slot); });
  }
  return left;
}

// The window as an ordinary frame executes it.
Program as_frame(Program program, const std::vector<TensorMeta>& inputs) {
  SlotTable slots;
  Slot name = 0;
  constexpr Device kMeta{DeviceType::kMeta};
  for (const TensorMeta& meta : inputs)
    slots.put(++name, {Tensor(new TensorImpl(meta, Ref<Storage>(new Storage(kMeta, 0)))), nullptr});
  program.set_release(names_left(program));
  fuse_pointwise(&program, slots);
  return program;
}

bool has_fused_convolution(const Program& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const Instruction& call) { return call.op->id == op_id::kFusedConvolution; });
}

Program optimised(Program program, absl::Span<const TensorMeta* const> metas) {
  merge_equal(&program, ProgramTypes(program, metas, kRecords), /*recorded=*/false);
  remove_unused(&program);
  if (has_convolution(program)) {
    const ProgramTypes types(program, metas, kRecords);
    fuse_convolutions(&program, types);
    program = keep_channels_last(program, ProgramTypes(program, metas, kRecords), metas, /*exact=*/true);
  }
  remove_identities(&program, ProgramTypes(program, metas, kRecords), /*keeps_errors=*/true);
  remove_unused(&program);
  const Program single = program;
  fuse_regions(&program, ProgramTypes(program, metas, kRecords));
  remove_unused(&program);
  const bool takes_more = peak_bytes(program, metas, kRecords) > peak_bytes(single, metas, kRecords);
  return takes_more ? single : program;
}

}  // namespace

void compile_window(const Program& window, WindowVersion* version) {
  const absl::Time start = absl::Now();
  bool is_ready = false;
  try {
    const size_t inputs = version->inputs_.size();
    check_program(window, inputs);
    std::vector<const TensorMeta*> metas;
    metas.reserve(inputs);
    for (const TensorMeta& meta : version->inputs_) metas.push_back(&meta);
    Program single = window;
    remove_unused(&single);
    if (!writes_in_place(single) && !is_excluded(single, ProgramTypes(single, metas, kRecords))) {
      const Program frame = as_frame(single, version->inputs_);
      Program& program = version->program_;
      program = optimised(single, metas);
      const auto fewer =
          static_cast<int64_t>(frame.instructions().size()) - static_cast<int64_t>(program.instructions().size());
      const auto saved =
          static_cast<int64_t>(window.instructions().size()) - static_cast<int64_t>(program.instructions().size());
      version->saved_instructions_ = std::max<int64_t>(saved, 0);
      version->saved_bytes_ =
          std::max<int64_t>(stored_bytes(frame, metas, kRecords) - stored_bytes(program, metas, kRecords), 0);
      version->saved_ns_ = fewer * kNsPerCall + version->saved_bytes_ / kBytesPerNs - kNsToReplace -
                           kNsToReplaceCall * static_cast<int64_t>(window.instructions().size());
      is_ready = (fewer > 0 && (version->saved_ns_ > 0 || version->is_always_ready_)) || has_fused_convolution(program);
      version->left_ = names_left(program);
      version->largest_name_ = inputs;
      for (const Instruction& call : program.instructions()) {
        for (Slot slot : call.results) version->largest_name_ = std::max(version->largest_name_, slot);
      }
    }
  } catch (const std::exception&) {
    is_ready = false;  // the calls are invalid: the session's thread reports the error when it executes them
  }
  if (!is_ready) version->program_.clear();
  version->bytes_.store(version->program_.bytes(), std::memory_order_relaxed);
  version->microseconds_.store(absl::ToInt64Microseconds(absl::Now() - start), std::memory_order_relaxed);
  version->state_.store(is_ready ? WindowVersion::State::kReady : WindowVersion::State::kRejected,
                        std::memory_order_release);
}

}  // namespace tt
