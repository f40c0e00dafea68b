// The custom operators of this process: those that an engine's libraries have added, and those that clients of this
// process have learned of. Operators are never removed. Thread-safe; find_custom_op takes no lock.
//
// An operator's id is made of its declaration, so that it is the same in every engine that has the operator, after a
// restart, and in stored Programs. If the id is taken by another operator, an engine uses the next free one, and a
// client refuses the operator.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/schema/custom_operator.h"

namespace tt {

// Maximum number of custom operators of a process.
inline constexpr size_t kMaxCustomOps = 4096;

// Null if there is no such operator. O(1).
const CustomOperator* find_custom_op(uint16_t id);
// Null if there is none; the first of those with this name. "mylib::scale".
const CustomOperator* find_custom_op(std::string_view name);
// In the order in which they were added.
std::vector<const CustomOperator*> all_custom_ops();

// What infer() does for a custom operator: its rules; and the refusal to record gradients that it does not declare,
// which throws Error (NotImplementedError).
void infer_custom(const Op& op, Args args, Inference* out);
void check_custom_gradient(const Op& op);

// Adds an operator under a free id, or returns the equal one that exists. Throws Error (ValueError) if there are too
// many.
const CustomOperator& add_custom_op(std::unique_ptr<CustomOperator> op);
// The same, under the id that the engine has chosen. Throws Error (ValueError) if another operator has the id.
const CustomOperator& add_custom_op(std::unique_ptr<CustomOperator> op, uint16_t id);

}  // namespace tt
