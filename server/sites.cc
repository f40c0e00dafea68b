#include "server/sites.h"

#include "absl/strings/str_cat.h"

namespace tt::server {

void Sites::add(const v1::Frame& frame) {
  if (frame.sites().empty()) return;
  std::lock_guard lock(mutex_);
  for (const v1::Site& site : frame.sites()) {
    if (sites_.size() >= kMaxSites) return;
    absl::string_view file = absl::string_view(site.file()).substr(0, kMaxText);
    absl::string_view function = absl::string_view(site.function()).substr(0, kMaxText);
    sites_[site.id()] = absl::StrCat(file, ":", site.line(), function.empty() ? "" : " in ", function);
  }
}

std::string Sites::describe(uint32_t id) const {
  std::lock_guard lock(mutex_);
  auto found = sites_.find(id);
  return found == sites_.end() ? "" : found->second;
}

void Sites::clear() {
  std::lock_guard lock(mutex_);
  sites_.clear();
}

}  // namespace tt::server
