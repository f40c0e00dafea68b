// Valid calls of operators whose arguments rarely match if drawn independently: random arguments are mutations of
// these.
#pragma once

#include <string_view>

namespace tt::fuzz {

// The arguments of a call as text; empty if there is none. Arguments are separated by blanks; omitted ones have
// defaults:
//   f[2,3]  a tensor: f floating, l int64, i int32, b bool, c complex, e 8-bit floating
//   (f[2] f[3])  a list of tensors; "-" is None in it
//   [1,2]  ints;  3  int;  0.5  float;  'mean'  string;  T F  bool;  -  None
std::string_view typical_call(std::string_view op);

}  // namespace tt::fuzz
