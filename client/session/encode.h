// encode: converts a call's arguments to the wire's Instruction.
#pragma once

#include <cstddef>

#include "client/session/tensor.h"
#include "engine/schema/op.h"
#include "proto/wire.h"

namespace tt::client {

// Estimates the encoded size of `args` in bytes. The result is at least the number of inline bytes in `args`.
size_t encoded_size(Args args);

// Appends `args` to a cleared instruction, omitting trailing arguments that equal their defaults. Tensor arguments must
// be Handles. Does not fail. Memory is allocated from the message's arena.
void encode_args(const Op& op, Args args, v1::Instruction* instruction);

}  // namespace tt::client
