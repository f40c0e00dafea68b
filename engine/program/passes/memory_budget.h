// What a Program of forward and backward computes again instead of keeping it, within a budget of memory.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// By instruction: whether it computes the same at any later place of the Program: it draws and writes nothing, and no
// call writes the memory of its arguments or results.
std::vector<bool> instructions_with_constant_values(const Program& program);

struct BudgetChoice {
  std::vector<size_t> again;  // the calls of forward whose results are computed again
  int64_t all_bytes = 0;      // of values of forward that are kept for backward if `again` is empty
  int64_t kept_bytes = 0;     // of those that are kept
};

// Chooses calls of forward so that the values that are kept for backward take at most `budget` (0 to 1) of the bytes
// that they take now, if that is possible: those first that take the least time per byte, by an estimate of the
// elements that they read and write and of the multiplications of matrix products and convolutions. `types` are those
// of the Program, whose names 1 to `inputs` are its inputs; `is_again` are the instructions whose results are not kept
// already. Inputs and outputs are not counted. Does not throw.
BudgetChoice choose_within_budget(const Program& program, const ProgramTypes& types, size_t inputs,
                                  const std::vector<bool>& is_backward, const std::vector<bool>& is_again,
                                  double budget);

}  // namespace tt
