// Pattern: an expression over instructions of a Program, written as text.
//
//     e = exp(sub(x, amax(x, D, True)))
//     div(e, sum(e, D, True))
//
// The last line is the result; earlier lines name parts that it uses. In a call, the operator's name is followed by its
// arguments, without trailing ones that have their defaults. A lower-case name is a tensor, one in capitals a list of
// integers, and one that begins with `$` a number; a name that occurs twice stands for the same value. Numbers, None,
// True and False match equal arguments, numbers with a relative tolerance of 1e-6, because programs round constants;
// inf and -inf match themselves. A name that begins with `@` is any other argument, of the kind that it may have.
// `[a, b]` is a list of tensors. `a | b` matches what a matches, or what b does: the first that fits. The arguments of add and mul match in both
// orders. `max_dim(...)` is its first result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "engine/program/passes/live_uses.h"
#include "engine/schema/program.h"

namespace tt {

// What a pattern's names stand for.
struct PatternMatch {
  absl::flat_hash_map<std::string, Slot> tensors;
  absl::flat_hash_map<std::string, std::vector<int64_t>> lists;
  absl::flat_hash_map<std::string, double> numbers;
  absl::flat_hash_map<std::string, Arg> arguments;  // which point into the Program
  std::vector<int> instructions;  // those that the pattern consists of, each once, without that of its result
};

// Immutable after construction; thread-safe.
class Pattern {
 public:
  // Throws Error if the text is not a pattern. Operators must exist.
  explicit Pattern(std::string_view text);

  // The operator that computes the result.
  uint16_t op() const;
  // Whether instruction `index` computes the pattern's result. Every other instruction of the match has one result,
  // which only the match reads. `uses` are those of `program`, whose names are defined once.
  bool match(const Program& program, const LiveUses& uses, int index, PatternMatch* match) const;

 private:
  struct Node;
  class Parser;
  class Matcher;
  std::shared_ptr<const Node> root_;
};

}  // namespace tt
