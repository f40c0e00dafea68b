#include "distributed/group/collective_fingerprint.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tt::distributed {
namespace {

bool is_known(const CollectiveFingerprint& a) {
  return a.kind <= CollectiveKind::kBarrier && a.op <= ReduceOp::kBxor && is_valid(static_cast<int64_t>(a.dtype)) &&
         a.memory <= CollectiveFingerprint::kOtherGPU;
}

bool has_op(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kReduceScatter;
}

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::kReduce || kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter;
}

bool same_call(const CollectiveFingerprint& a, const CollectiveFingerprint& b) {
  if (a.sequence != b.sequence || a.kind != b.kind) return false;
  if (a.kind == CollectiveKind::kBarrier) return true;
  if (a.dtype != b.dtype) return false;
  if (a.kind != CollectiveKind::kAllToAll && a.count != b.count) return false;
  return (!has_op(a.kind) || a.op == b.op) && (!has_root(a.kind) || a.root == b.root);
}

std::string describe(size_t rank, const CollectiveFingerprint& a) {
  constexpr std::string_view kOps[] = {"sum", "product", "min", "max", "band", "bor", "bxor"};
  std::string text = absl::StrCat("rank ", rank, " called ", message_part(name(a.kind)));
  if (a.kind != CollectiveKind::kBarrier) {
    absl::StrAppend(&text, " of ", a.count, " ", message_part(name(a.dtype)));
    if (has_op(a.kind)) absl::StrAppend(&text, " with ", message_part(kOps[static_cast<size_t>(a.op)]));
    if (has_root(a.kind)) absl::StrAppend(&text, " and root ", a.root);
  }
  if (!a.site().empty()) absl::StrAppend(&text, " (", message_part(a.site()), ")");
  return text;
}

}  // namespace

void CollectiveFingerprint::set_text(std::string_view site, std::string_view message) {
  site = site.substr(0, sizeof(text) / 2);
  message = message.substr(0, sizeof(text) - site.size());
  site_bytes = static_cast<uint16_t>(site.size());
  message_bytes = static_cast<uint16_t>(message.size());
  std::copy(site.begin(), site.end(), text);
  std::copy(message.begin(), message.end(), text + site.size());
}

std::string_view CollectiveFingerprint::site() const { return {text, std::min<size_t>(site_bytes, sizeof(text))}; }

std::string_view CollectiveFingerprint::message() const {
  const size_t begin = site().size();
  return {text + begin, std::min<size_t>(message_bytes, sizeof(text) - begin)};
}

std::optional<Error> disagreement(absl::Span<const CollectiveFingerprint> all) {
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!is_known(all[rank])) {
      return Error(ErrorKind::kRuntime, absl::StrCat("rank ", rank, " announced an invalid collective"));
    }
  }
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].failed == 0) continue;
    const std::string_view site = all[rank].site();
    return Error(ErrorKind::kRuntime,
                 absl::StrCat("rank ", rank, " called ", message_part(name(all[rank].kind)), " with a failed tensor",
                              site.empty() ? "" : absl::StrCat(" (", message_part(site), ")"), ": ",
                              message_part(all[rank].message())));
  }
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (same_call(all[0], all[rank])) continue;
    return Error(ErrorKind::kRuntime, absl::StrCat("expected the same collective on all ranks, but ",
                                                   describe(0, all[0]), " and ", describe(rank, all[rank])));
  }
  return std::nullopt;
}

}  // namespace tt::distributed
