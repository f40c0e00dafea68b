// The encoding of repeated instructions in Frame.layout (docs/wire.md, "Repeated instructions"), shared by both sides.
//
// A template is an instruction without its operands: its handles and the values of its integer arguments, such as an
// optimizer's step. A stream's two ends remember templates in the same order, so that a repeated instruction is sent as
// the template's number and the operands.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/wire.h"

namespace tt::layout {

// Elements of Frame.layout. A larger value v refers to template v - kFirstTemplate, and the instruction's operands
// follow.
inline constexpr uint64_t kPlain = 0;     // the next element of Frame.instructions
inline constexpr uint64_t kRemember = 1;  // the same, which becomes the next template
inline constexpr uint64_t kForget = 2;    // removes all templates
inline constexpr uint64_t kFirstTemplate = 3;
// Maximum number of elements of a layout with copies, when the copies are written out.
inline constexpr size_t kMaxElementsWithCopies = size_t{1} << 19;

// Handles are sent relative to `next`, the name after the last named result, or as they are, whichever is smaller.
inline uint64_t encode_handle(uint64_t handle, uint64_t next) {
  const uint64_t distance = next - handle;
  return distance < handle ? distance << 1 | 1 : handle << 1;
}
inline uint64_t decode_handle(uint64_t code, uint64_t next) { return (code & 1) != 0 ? next - (code >> 1) : code >> 1; }
// Larger handles cannot be encoded.
inline constexpr uint64_t kMaxHandle = UINT64_MAX >> 1;

// Small absolute values have small codes.
inline uint64_t encode_integer(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t decode_integer(uint64_t code) { return static_cast<int64_t>(code >> 1 ^ (~(code & 1) + 1)); }

// Returns the name after the results of `instruction`, or `next` if it names none.
inline uint64_t next_name(const v1::Instruction& instruction, uint64_t next) {
  if (instruction.result() == 0) return next;
  return instruction.result() + (instruction.result_count() == 0 ? 1 : instruction.result_count());
}

// Calls `handle` with each handle and `integer` with each integer argument of `instruction`, in the order of
// Frame.layout, and replaces it by the result. A result name of 0 is not a handle.
template <typename Handle, typename Integer>
void replace_operands(v1::Instruction* instruction, Handle handle, Integer integer) {
  for (v1::Argument& arg : *instruction->mutable_args()) {
    if (arg.has_handle()) {
      arg.set_handle(handle(arg.handle()));
    } else if (arg.has_integer()) {
      arg.set_integer(integer(arg.integer()));
    } else if (arg.has_handles()) {
      for (uint64_t& value : *arg.mutable_handles()->mutable_values()) value = handle(value);
    }
  }
  if (instruction->result() != 0) instruction->set_result(handle(instruction->result()));
  for (uint64_t& value : *instruction->mutable_into()) value = handle(value);
  for (uint64_t& value : *instruction->mutable_release()) value = handle(value);
}

}  // namespace tt::layout
