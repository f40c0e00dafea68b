// encode: converts a call's arguments to the wire's Instruction, and the engine's description of a tensor to metadata.
#pragma once

#include <cstddef>

#include "client/session/tensor.h"
#include "engine/schema/op.h"
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

// Estimates the encoded size of `args` in bytes. The result is at least the number of inline bytes in `args`.
size_t encoded_size(Args args);

// Appends `args` to a cleared instruction, omitting trailing arguments that equal their defaults. Tensor arguments must
// be Handles. Does not fail. Memory is allocated from the message's arena.
void encode_args(const Op& op, Args args, v1::Instruction* instruction);

// Sets dtype, device and sizes of a tensor whose engine has described it. The tensor is then contiguous. Throws Error if
// the device is invalid.
void decode_description(const v1::TensorDescription& description, TensorMeta* meta);

}  // namespace tt::client
