// JSON of arguments and Programs, as Python's json module reads it: with NaN, Infinity and -Infinity.
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/schema/op.h"
#include "engine/schema/program.h"

namespace tt {

std::string json_string(std::string_view text);
std::string json_number(double value);

template <typename List>
std::string json_list(const List& list) {
  return absl::StrCat("[",
                      absl::StrJoin(list, ",",
                                    [](std::string* out, auto value) {
                                      if constexpr (std::is_integral_v<decltype(value)>)
                                        absl::StrAppend(out, value);
                                      else
                                        absl::StrAppend(out, json_number(value));
                                    }),
                      "]");
}

// An argument's value. A dtype is {"dtype": name}, a device {"device": name}, a complex number {"complex": [real,
// imaginary]}, non-ASCII bytes {"bytes": hexadecimal}, a name of a Program {"name": number}, and a list of
// them {"names": [number, ...]}, with 0 for no tensor. If `conjugated`, a complex number is conjugated.
std::string json_value(const Param& param, const Arg& arg, bool conjugated = false);

// {"instructions": [{"op": name, "args": {parameter: value, ...}, "results": [number, ...], "into": bool}, ...],
//  "outputs": [number, ...]}. `args` lacks trailing arguments that are defaults.
std::string to_json(const Program& program);

}  // namespace tt
