#include "engine/memory/bytes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tt {

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (value >= 1024 && unit < 5) value /= 1024, ++unit;
  bool is_integer = value == static_cast<double>(static_cast<uint64_t>(value));
  return absl::StrFormat("%.*f %s", is_integer ? 0 : 2, value, kUnits[unit]);
}

}  // namespace tt
