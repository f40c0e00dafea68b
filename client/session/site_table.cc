#include "client/session/site_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tt::client {

uint32_t SiteTable::number(std::string_view file, uint32_t line, std::string_view function, bool* is_new) {
  MutexLock lock(mutex_);
  auto [it, inserted] = numbers_.try_emplace(Key(file, line, function), static_cast<uint32_t>(sites_.size()));
  if (inserted) sites_.push_back({std::string(file), std::string(function), line});
  *is_new = inserted;
  return it->second;
}

void SiteTable::describe(uint32_t number, v1::Site* description) const {
  MutexLock lock(mutex_);
  description->Clear();
  if (number == 0 || number >= sites_.size()) return;
  description->set_file(sites_[number].file);
  description->set_line(sites_[number].line);
  description->set_function(sites_[number].function);
}

std::string SiteTable::name(uint32_t number) const {
  MutexLock lock(mutex_);
  return name_of(number);
}

std::string SiteTable::name_of(uint32_t number) const {
  if (number == 0 || number >= sites_.size()) return "";
  const Site& site = sites_[number];
  return site.function.empty() ? absl::StrCat(site.file, ":", site.line)
                               : absl::StrCat(site.file, ":", site.line, " in ", site.function);
}

void SiteTable::count_wait(uint32_t number, WaitKind kind, double seconds) {
  MutexLock lock(mutex_);
  Site::Total& total = sites_[number < sites_.size() ? number : 0].waits[static_cast<size_t>(kind)];
  ++total.count;
  total.seconds += seconds;
}

void SiteTable::total(Counters* counters) const {
  MutexLock lock(mutex_);
  for (const Site& site : sites_) {
    for (WaitKind kind : {WaitKind::kRead, WaitKind::kUpload}) {
      counters->waits += site.waits[static_cast<size_t>(kind)].count;
      counters->seconds_waited += site.waits[static_cast<size_t>(kind)].seconds;
    }
    counters->seconds_blocked += site.waits[static_cast<size_t>(WaitKind::kWindow)].seconds;
  }
}

std::vector<WaitCount> SiteTable::waits() const {
  MutexLock lock(mutex_);
  std::vector<WaitCount> waits;
  for (uint32_t i = 0; i < sites_.size(); ++i) {
    for (size_t kind = 0; kind < kWaitKinds; ++kind) {
      const Site::Total& total = sites_[i].waits[kind];
      if (total.count > 0) waits.push_back({name_of(i), static_cast<WaitKind>(kind), total.count, total.seconds});
    }
  }
  std::stable_sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return waits;
}

}  // namespace tt::client
