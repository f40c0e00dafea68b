// Program: instructions over slots. An eager frame is one that nobody named.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/schema/arg.h"
#include "engine/schema/op.h"

namespace tt {

using Slot = uint64_t;  // a client's handle, or a compiled graph's own number; 0 names nothing

struct Instruction {
  enum Flags : uint8_t {
    kGrad = 1,       // the caller's grad mode was on
    kInference = 2,  // the caller was in inference mode
    kInto = 4,       // results land in the tensors that `results` name already
  };
  const Op* op = nullptr;
  Args args;                       // tensors as kSlot and kSlots; memory is the Program's owner's
  absl::Span<const Slot> results;  // new names, or (kInto) the names of where to land
  absl::Span<const Slot> release;  // names dropped before this instruction runs
  uint8_t flags = kGrad;
  uint32_t site = 0;  // the client's number for the user's source line
};

struct Program {
  std::vector<Instruction> instructions;
  // Names that whoever runs the Program drops once it has run, without reading them; the executor
  // leaves them alone. May be fewer than that: it is for passes to know.
  absl::Span<const Slot> release;
};

}  // namespace tt
