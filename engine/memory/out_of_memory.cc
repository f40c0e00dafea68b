#include "engine/memory/out_of_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/memory/bytes.h"

namespace tt {
namespace {

constexpr size_t kNamed = 4;

std::string bound_text(const OutOfMemory& o) {
  std::string text = o.limit ? absl::StrCat("the limit is ", bytes_text(o.limit)) : "";
  if (o.system && o.system->kept_free > 0) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", bytes_text(o.system->free), " of the host's ",
                    bytes_text(o.system->total), " are available, of which ", bytes_text(o.system->kept_free),
                    " are kept free");
  } else if (o.system) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", bytes_text(o.system->free), " of ", bytes_text(o.system->total),
                    " are free on the device");
  }
  return text.empty() ? "the system has no memory left" : text;
}

std::string holders_text(const OutOfMemory& o) {
  std::string text;
  uint64_t others = 0;
  for (size_t i = 0; i < o.holders.size(); ++i) {
    if (i < kNamed) {
      absl::StrAppend(&text, i ? ", " : "; held by: ", o.holders[i].name, " ", bytes_text(o.holders[i].bytes));
    } else {
      others += o.holders[i].bytes;
    }
  }
  if (others > 0) absl::StrAppend(&text, ", others ", bytes_text(others));
  return text;
}

// Whether the host's available memory was the reason, and not the limit.
bool is_host_short(const OutOfMemory& o) {
  const uint64_t reserved = o.stats.all.reserved.now;
  const bool fits_limit = o.limit == 0 || (o.requested <= o.limit && reserved <= o.limit - o.requested);
  return o.system && o.system->kept_free > 0 && fits_limit && o.system->free <= o.system->total;
}

// Suggests remedies, the most likely one first.
std::string advice(const OutOfMemory& o) {
  const uint64_t unused = o.stats.all.reserved.now - std::min(o.stats.all.reserved.now, o.stats.all.active.now);
  const uint64_t needed = is_accelerator(o.device.type) ? o.requested : UINT64_MAX;
  if (o.capturing)
    return "run the program once before capturing it, to reduce the memory needed; or empty the cache first";
  if (is_host_short(o)) {
    const uint64_t used = o.system->total - o.system->free;
    const uint64_t others = used - std::min(o.stats.all.reserved.now, used);
    if (others > o.stats.all.reserved.now) {
      return absl::StrCat("end other processes: they and the rest of the engine use ", bytes_text(others),
                          " of the host's memory");
    }
  }
  if (unused >= needed && !o.expandable) {
    return "free memory is fragmented: start the engine with TELETENSOR_ALLOC_CONF=expandable_segments:True";
  }
  if (o.holders.size() > 1) return "smaller batches, or wait for other sessions (`teletensor status` shows them)";
  return "smaller batches, or `del` tensors that are no longer needed";
}

}  // namespace

Error OutOfMemory::error() const {
  const uint64_t unused = stats.all.reserved.now - std::min(stats.all.reserved.now, stats.all.active.now);
  std::string text = absl::StrCat("out of memory on ", to_string(device), ": requested ", bytes_text(requested), ", ",
                                  bound_text(*this), ", ", bytes_text(stats.all.requested.now), " are allocated, ",
                                  bytes_text(stats.all.reserved.now), " reserved");
  if (unused > 0) {
    absl::StrAppend(&text, ", ", bytes_text(unused), " of them unused in blocks of at most ", bytes_text(largest_free));
  }
  absl::StrAppend(&text, holders_text(*this), "; try: ", advice(*this));
  Error error(ErrorKind::kOutOfMemory, std::move(text));
  error.set_op("allocate");
  return error;
}

}  // namespace tt
