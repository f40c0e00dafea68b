// Runs a Program as one call: over tensors instead of a session's names, as a composite operator does.
//
// The Program's names exist during the run only. Its calls are recorded by autograd, profiled and cancelled like those
// of any composite. Used on a session's thread, with its Context current.
#pragma once

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "engine/program/slot_table.h"
#include "engine/schema/program.h"
#include "engine/tensor/tensor.h"

namespace tt {

// Checks what does not depend on the inputs: that every name is defined once and before its uses, which are those of
// existing tensors; that arguments have the right kinds; that the operators can run in a Program, which excludes those
// that wait for something outside, those whose results' sizes depend on values, and other Programs; that the outputs
// are distinct results. Names are at most Program::kMaxNames. Throws Error (ValueError, TypeError or
// NotImplementedError) with the index of the instruction.
void check_program(const Program& program, size_t inputs);

// The values of the names 1, 2, ..., of which the Program may change `written` in place. `constants` follow the inputs,
// if a pass has made any (passes/fold_constants.h).
struct ProgramInputs {
  absl::Span<const Tensor> read;
  absl::Span<const Tensor> written;
  absl::Span<const Tensor> constants = {};
};

// Returns the outputs. Requires check_program() with the number of inputs. `describe_site` returns the source line of
// an instruction's site, or "". Throws Error of the first instruction that fails, with its index and source line; what
// earlier instructions have written stays written. Throws Error (RuntimeError) before an instruction that would change
// an input that is not in `written`, through whatever view.
Tensors run_program(const Program& program, const ProgramInputs& inputs,
                    absl::FunctionRef<std::string(uint32_t)> describe_site);

// The names that run_program() begins with, for passes that read the inputs' sizes and dtypes.
void put_inputs(const ProgramInputs& inputs, SlotTable* slots);

}  // namespace tt
