// Messages of errors in the offsets and lengths of a jagged tensor.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace tt {

inline std::string offsets_outside(int64_t total, int64_t first, int64_t last) {
  return absl::StrCat("expected offsets between 0 and ", total, ", got offsets from ", first, " to ", last);
}
inline std::string offsets_out_of_order(int64_t total, int64_t offset, int64_t before) {
  return absl::StrCat("expected offsets that do not decrease and are at most ", total, ", got ", offset, " after ",
                      before);
}
// `begin` is at most `end`.
inline std::string length_outside(int64_t begin, int64_t end, int64_t length) {
  return absl::StrCat("expected a length between 0 and ", end - begin, " for the sequence from offset ", begin, " to ",
                      end, ", got ", length);
}

}  // namespace tt
