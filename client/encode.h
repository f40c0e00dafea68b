// encode: a call's arguments as the wire's Instruction.
#pragma once

#include <cstddef>

#include "client/tensor.h"
#include "engine/schema/op.h"
#include "proto/wire.h"

namespace tt::client {

// About how many bytes `args` take on the wire; never less than the inline bytes they carry.
size_t encoded_size(Args args);

// Appends `args` to a cleared instruction, without the trailing ones that are their defaults.
// Tensor arguments are Handles. Does not fail: allocation is the arena's.
void encode_args(const Op& op, Args args, v1::Instruction* instruction);

}  // namespace tt::client
