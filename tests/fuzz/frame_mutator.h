// Frames for the random tests: valid frames of all operators, and mutations by field and by byte.
//
// Deterministic: the same generator state gives the same frame.
#pragma once

#include <cstddef>
#include <cstdint>
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
// Mutates a serialized frame in place for a fuzz target: three times in four its fields, so that most inputs remain
// valid frames, otherwise with `mutate_bytes`, libFuzzer's mutator of bytes. Returns the new size.
size_t mutate_serialized(uint8_t* data, size_t size, size_t max_size, unsigned seed,
                         size_t (*mutate_bytes)(uint8_t*, size_t, size_t));

}  // namespace tt::fuzz
