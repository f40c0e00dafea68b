// The metadata of the results of chains, which only passes write.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "engine/program/chain_code.h"
#include "engine/schema/meta.h"
#include "engine/schema/op.h"

namespace tt {

// By step: what the operators' rules infer for these inputs of the chain. Throws Error as the rules do.
std::vector<Inference> infer_steps(const CodedSteps& steps, absl::Span<const TensorMeta* const> inputs,
                                   bool grad_enabled);

// As infer_in_program() (schema/program_types.h); also the results of chains.
void infer_with_chains(const Op& op, Args args, bool grad_enabled, Inference* inferred);

}  // namespace tt
