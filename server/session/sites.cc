#include "server/session/sites.h"

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "engine/session/image.h"

namespace tt::server {

void Sites::add(const v1::Frame& frame) {
  if (frame.sites().empty()) return;
  MutexLock lock(mutex_);
  for (const v1::Site& site : frame.sites()) {
    if (sites_.size() >= kMaxSites || text_bytes_ >= kMaxBytes) return;
    const std::string file = printable(site.file(), kMaxText), function = printable(site.function(), kMaxText);
    std::string& text = sites_[site.id()];
    text_bytes_ -= text.capacity();
    text = absl::StrCat(file, ":", site.line(), function.empty() ? "" : " in ", function);
    text_bytes_ += text.capacity();
  }
}

uint64_t Sites::bytes() const {
  MutexLock lock(mutex_);
  return text_bytes_ + sites_.capacity() * (sizeof(uint32_t) + sizeof(std::string) + 8);
}

std::string Sites::describe(uint32_t id) const {
  MutexLock lock(mutex_);
  auto found = sites_.find(id);
  return found == sites_.end() ? "" : found->second;
}

void Sites::write_image(ImageOutput* out) const {
  MutexLock lock(mutex_);
  out->number(sites_.size());
  for (const auto& [id, text] : sites_) {
    out->number(id);
    out->text(text);
  }
}

void Sites::read_image(ImageInput* in) {
  MutexLock lock(mutex_);
  for (size_t count = in->count(); count > 0; --count) {
    std::string& text = sites_[static_cast<uint32_t>(in->number(UINT32_MAX))];
    text = printable(in->text());
    text_bytes_ += text.capacity();
  }
}

void Sites::clear() {
  MutexLock lock(mutex_);
  absl::flat_hash_map<uint32_t, std::string>().swap(sites_);
  text_bytes_ = 0;
}

}  // namespace tt::server
