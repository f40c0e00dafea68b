// What the rules of rewrite() have in common: what a pattern has matched, and the calls that replace it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/program/passes/pattern.h"
#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt {

// A call before the one that replaces a pattern, which reads its result as prepared(i).
struct Preparation {
  std::string_view op;
  std::vector<Arg> args;
  std::vector<int64_t> integers = {};  // of a list among the arguments
  std::vector<Slot> tensors = {};      // of a list among the arguments
};

// An operator's arguments as owned values; a Program copies them.
struct Replacement {
  std::string_view op;
  std::vector<Arg> args;
  std::vector<int64_t> integers = {};  // of a list among the arguments
  std::vector<Preparation> before = {};
};

// Stands for the result of preparation i until it has a name.
inline Slot prepared_slot(size_t i) { return std::numeric_limits<Slot>::max() - i; }
inline Arg prepared(size_t i) { return slot_arg(prepared_slot(i)); }

class Types {
 public:
  Types(const PatternMatch& match, const ProgramTypes& types) : match_(match), types_(types) {}

  Slot slot(const char* name) const { return match_.tensors.at(name); }
  const TensorMeta& of(const char* name) const { return types_.of(slot(name)); }
  bool has(const char* name) const { return match_.tensors.contains(name); }
  bool has_number(const char* name) const { return match_.numbers.contains(name); }
  double number(const char* name) const { return match_.numbers.at(name); }
  // 1 if the pattern has matched without the number.
  double factor(const char* name) const {
    const auto found = match_.numbers.find(name);
    return found == match_.numbers.end() ? 1 : found->second;
  }
  bool has_argument(const char* name) const { return match_.arguments.contains(name); }
  const Arg& argument(const char* name) const { return match_.arguments.at(name); }
  bool has_list(const char* name) const { return match_.lists.contains(name); }
  const std::vector<int64_t>& list(const char* name) const { return match_.lists.at(name); }
  // The dimension of a list with one entry, not negative; nothing if it has more.
  std::optional<int64_t> dim(const char* list, const char* tensor) const {
    const std::vector<int64_t>& dims = match_.lists.at(list);
    if (dims.size() != 1) return std::nullopt;
    return dims[0] < 0 ? dims[0] + of(tensor).dim() : dims[0];
  }
  bool has_one(const char* list) const { return match_.lists.at(list).size() == 1; }
  bool is_last(const char* list, const char* tensor) const { return dim(list, tensor) == of(tensor).dim() - 1; }
  // Whether the tensor has one element per element of x's last dimension.
  bool is_row_of(const char* tensor, const TensorMeta& x) const {
    const TensorMeta& row = of(tensor);
    return row.dim() == 1 && x.dim() > 0 && row.sizes[0] == x.sizes.back() && row.dtype == x.dtype;
  }

 private:
  const PatternMatch& match_;
  const ProgramTypes& types_;
};

using Build = std::optional<Replacement> (*)(const Types& types);

// Adds a rule: the pattern, and what makes the replacement of its matches, which is nothing if the rule does not apply.
// `is_last`: only after all rules without it, whose patterns contain this one.
using AddRule = absl::FunctionRef<void(const std::string& pattern, Build build, bool is_last)>;

// Losses over classes become cross_entropy.
void add_loss_rules(AddRule add);

}  // namespace tt
