#include "engine/memory/alloc_conf.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

[[noreturn]] void bad(absl::string_view key, absl::string_view value, absl::string_view expected) {
  fail(ErrorKind::kValue, "TELETENSOR_ALLOC_CONF: ", key, " must be ", expected, ", got '", value, "'");
}

uint64_t parse_whole(absl::string_view key, absl::string_view text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
    bad(key, text, absl::StrCat("a whole number from ", min, " to ", max));
  }
  return value;
}

uint16_t parse_divisions(absl::string_view key, absl::string_view text) {
  const uint64_t value = parse_whole(key, text, 0, 256);
  if (value != 0 && !std::has_single_bit(value)) bad(key, text, "powers of two");
  return static_cast<uint16_t>(value);
}

size_t interval_of(uint64_t bytes) {
  constexpr int kFirst = std::bit_width(kMiB) - 1;
  const int interval = std::bit_width(bytes) - 1 - kFirst;
  return static_cast<size_t>(std::clamp(interval, 0, 15));
}

// "[256:1,512:2,>:8]": for sizes up to 256 MiB, up to 512 MiB, and larger.
void parse_division_list(absl::string_view key, absl::string_view list, AllocConf* conf) {
  auto& divisions = conf->roundup_power2_divisions;
  size_t next = 0;
  for (absl::string_view entry : absl::StrSplit(list, ',')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(entry, ':');
    size_t upto = divisions.size() - 1;
    if (parts.first != ">") {
      const uint64_t megabytes = parse_whole(key, parts.first, 1, 65536);
      if (!std::has_single_bit(megabytes)) bad(key, entry, "a list of sizes that are powers of two");
      upto = interval_of(megabytes * kMiB);
    }
    const uint16_t value = parse_divisions(key, parts.second);
    for (; next <= upto; ++next) divisions[next] = value;
  }
}

double parse_fraction(absl::string_view key, absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !(value > 0 && value < 1)) {
    bad(key, text, "between 0 and 1, both excluded");
  }
  return value;
}

bool parse_bool(absl::string_view key, absl::string_view text) {
  if (text == "True" || text == "true") return true;
  if (text == "False" || text == "false") return false;
  bad(key, text, "True or False");
}

void set(absl::string_view key, absl::string_view value, AllocConf* conf) {
  constexpr uint64_t kMaxMegabytes = uint64_t{1} << 32;
  if (key == "max_split_size_mb") {
    conf->max_split_size = parse_whole(key, value, 21, kMaxMegabytes) * kMiB;
  } else if (key == "max_non_split_rounding_mb") {
    conf->max_non_split_rounding = parse_whole(key, value, 21, kMaxMegabytes) * kMiB;
  } else if (key == "garbage_collection_threshold") {
    conf->garbage_collection_threshold = parse_fraction(key, value);
  } else if (key == "expandable_segments") {
    conf->expandable_segments = parse_bool(key, value);
  } else if (key == "roundup_power2_divisions") {
    if (absl::StartsWith(value, "[") && absl::EndsWith(value, "]")) {
      parse_division_list(key, value.substr(1, value.size() - 2), conf);
    } else {
      conf->roundup_power2_divisions.fill(parse_divisions(key, value));
    }
  } else {
    fail(ErrorKind::kValue, "TELETENSOR_ALLOC_CONF: unknown key '", key,
         "'; the keys are max_split_size_mb, max_non_split_rounding_mb, garbage_collection_threshold, "
         "expandable_segments and roundup_power2_divisions");
  }
}

// Returns the position of the next comma outside brackets, or the end.
size_t end_of_entry(absl::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
    if (text[i] == ',' && depth <= 0) return i;
  }
  return text.size();
}

}  // namespace

size_t AllocConf::rounded(size_t bytes, size_t granule) const {
  const size_t divisions = roundup_power2_divisions[interval_of(bytes)];
  size_t step = granule;
  if (divisions > 1 && bytes > granule * divisions) step = std::max(std::bit_floor(bytes) / divisions, granule);
  return (bytes + step - 1) & ~(step - 1);
}

AllocConf parse_alloc_conf(std::string_view given) {
  const std::string stripped = absl::StrReplaceAll({given.data(), given.size()}, {{" ", ""}, {"\t", ""}});
  AllocConf conf;
  for (absl::string_view text = stripped; !text.empty();) {
    const size_t end = end_of_entry(text);
    const absl::string_view entry = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = entry.find(':');
    if (colon == entry.npos) {
      fail(ErrorKind::kValue, "TELETENSOR_ALLOC_CONF: expected key:value, got '", entry, "'");
    }
    set(entry.substr(0, colon), entry.substr(colon + 1), &conf);
  }
  return conf;
}

AllocConf alloc_conf_of_environment() {
  const char* text = std::getenv("TELETENSOR_ALLOC_CONF");
  return text ? parse_alloc_conf(text) : AllocConf();
}

}  // namespace tt
