// Decoder: a Frame of the wire as a Program of the engine.
//
// What only the wire can get wrong is found here: unknown operators, counts beyond the limits, inline bytes, names that
// run over the end. Argument kinds, results' counts and names in use are the executor's to check, on what it runs. One
// a session, used under its lock; it keeps its vectors from frame to frame, so that decoding allocates nothing once
// they are warm.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/executor.h"
#include "engine/program/program.h"
#include "proto/wire.h"
#include "server/limits.h"

namespace tt::server {

class Decoder {
 public:
  explicit Decoder(const Limits& limits) : limits_(limits) {}

  // Borrows from `frame` and from the Decoder: valid until either changes. Throws ProgramFault, before anything has
  // been executed, on a frame that lies.
  const Program& decode(const v1::Frame& frame);

 private:
  void reserve(const v1::Frame& frame);
  void decode_instruction(const v1::Instruction& wire, Instruction* instruction);
  Arg decode_arg(const v1::Argument& wire, const Op& op) const;
  absl::Span<const Slot> name_results(const v1::Instruction& wire, const Op& op);

  const Limits limits_;
  Program program_;
  std::vector<Arg> args_;    // of all instructions, one after another; never grows while a frame is decoded
  std::vector<Slot> names_;  // likewise, of results
};

}  // namespace tt::server
