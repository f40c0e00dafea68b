#include "client/link/kept_uploads.h"

#include <utility>

namespace tt::client {

void KeptUploads::add(uint64_t transfer, Device device, absl::Span<const char> bytes) {
  Upload upload{device, nullptr};
  if (bytes.size() <= kMaxBytes - bytes_) {
    upload.data = std::make_shared<const std::string>(bytes.data(), bytes.size());
    bytes_ += bytes.size();
  }
  uploads_.insert_or_assign(transfer, std::move(upload));
}

void KeptUploads::sent(uint64_t transfer) {
  if (const auto found = uploads_.find(transfer); found != uploads_.end()) found->second.sent = true;
}

void KeptUploads::used_in(uint64_t transfer, uint64_t sequence) {
  if (const auto found = uploads_.find(transfer); found != uploads_.end()) found->second.frame = sequence;
}

void KeptUploads::forget(uint64_t sequence) {
  for (auto at = uploads_.begin(); at != uploads_.end();) {
    const Upload& upload = at->second;
    if (upload.frame == 0 || upload.frame > sequence) {
      ++at;
      continue;
    }
    if (upload.data) bytes_ -= upload.data->size();
    at = uploads_.erase(at);
  }
}

std::optional<std::vector<KeptUploads::Bytes>> KeptUploads::after(uint64_t sequence) const {
  std::vector<Bytes> found;
  for (const auto& [transfer, upload] : uploads_) {
    if (!upload.sent || (upload.frame != 0 && upload.frame <= sequence)) continue;
    if (!upload.data) return std::nullopt;
    found.push_back({transfer, upload.device, upload.data});
  }
  return found;
}

}  // namespace tt::client
