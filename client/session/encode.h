// encode: converts a call's arguments to the wire's Instruction, and the engine's description of a tensor to metadata.
#pragma once

#include <cstddef>

#include "client/link/outgoing_frame.h"
#include "client/session/tensor.h"
#include "engine/schema/op.h"
#include "engine/schema/program.h"
#include "proto/wire.h"

namespace tt::client {

// Calls `f` with each tensor of an argument, as const Handle*.
template <typename F>
void for_each_tensor(const Arg& arg, F f) {
  if (arg.kind == Arg::Kind::kTensor) {
    f(static_cast<const Handle*>(arg.tensor));
  } else if (arg.kind == Arg::Kind::kTensors) {
    for (const TensorMeta* tensor : arg.list()) {
      if (tensor) f(static_cast<const Handle*>(tensor));
    }
  }
}

// Returns the number of `args` without trailing ones that equal their defaults.
size_t count_given(const Op& op, Args args);

// Returns the size of an instruction with these arguments. Throws Error (ValueError) if a string has more than
// `max_inline_bytes`, because the engine would refuse the frame.
FrameSize encoded_size(const Op& op, Args args, size_t max_inline_bytes);

// Appends `args` to a cleared instruction, omitting trailing arguments that equal their defaults. Tensor arguments must
// be Handles. Does not fail. Memory is allocated from the message's arena.
void encode_args(const Op& op, Args args, v1::Instruction* instruction);

// Appends the program's instructions, outputs (as reads numbered from 1) and releases to `frame`, such that the engine
// decodes an equal Program. Requires that new results of an instruction have consecutive names, as in clients' frames.
void encode_program(const tt::Program& program, v1::Frame* frame);

// Sets dtype, device and sizes of a tensor whose engine has described it. The tensor is then contiguous. Throws Error
// if the device is invalid.
void decode_description(const v1::TensorDescription& description, TensorMeta* meta);

}  // namespace tt::client
