// Frames for the random tests: valid frames of all operators, and mutations by field and by byte.
//
// Deterministic: the same generator state gives the same frame.
#pragma once

#include <random>

#include "proto/wire.h"

namespace tt::fuzz {

using Random = std::mt19937_64;

// Creates the float32 tensors 1 ([2, 3]), 2 ([3]) and 3 (their sum). Sequence 1.
v1::Frame first_frame();
// Six random operators on tensors 1 to 3 with arguments of the right kinds. Sequence 2.
v1::Frame random_frame(Random& random);
// Changes one to three fields or, one time in four, bytes of the serialized frame.
void mutate(v1::Frame* frame, Random& random);
// Changes one to three fields; occasionally adds or removes an instruction.
void mutate_fields(v1::Frame* frame, Random& random);

}  // namespace tt::fuzz
