// LeadingValues: divides a Program after its last backward pass, so that passes can expand the first part without the
// instructions that follow, such as an optimizer's step.
//
// The first part continues up to the first instruction that writes. It also contains every later detach() of its own
// results: detach() returns the same view whenever it is called, and a loss that is returned detached then needs no
// tape.
#pragma once

#include <optional>
#include <vector>

#include "engine/schema/program.h"

namespace tt {

class LeadingValues {
 public:
  // Of a Program with names 1 to `inputs` for its inputs. Keeps a reference to it. The first `at_least` instructions
  // lead even if they write.
  LeadingValues(const Program& program, size_t inputs, size_t at_least);

  // The leading instructions. Their outputs are the results that later instructions or the caller read.
  Program program() const;
  // The whole Program, with program() as passes have changed it. They may have renamed everything but the inputs; the
  // outputs have kept their order. Nothing if it would have too many names.
  std::optional<Program> joined(Program leading) const;

 private:
  const Program& program_;
  const size_t inputs_;
  std::vector<bool> leads_;  // by instruction
  std::vector<Slot> outputs_;
};

}  // namespace tt
