// The image of the state that no session owns: publications, and shared tensors whose sessions have ended. It has the
// parts of a session's image (session_image.h) without a record.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/memory/account.h"
#include "engine/schema/error.h"
#include "server/session/image_parts.h"
#include "server/session/sessions.h"

namespace tt::server {

void Sessions::write_shared(absl::FunctionRef<bool(uint64_t session)> is_passed, ImageBlocks* blocks, ImageSink* sink) {
  ImageOutput structure;
  std::vector<Ref<Storage>> contents;
  publications_->write_image(is_passed, blocks, &structure, &contents);
  std::vector<std::pair<std::string, std::shared_ptr<SharedTensors>>> shared;
  {
    MutexLock lock(mutex_);
    shared.assign(shared_.begin(), shared_.end());
  }
  structure.number(shared.size());
  for (const auto& [principal, tensors] : shared) {
    structure.text(principal);
    tensors->write_image(blocks, &structure, &contents);
  }
  uint64_t bytes = kPartBytes + structure.bytes().size() + sizeof(uint32_t);
  for (const Ref<Storage>& storage : contents) bytes += storage->bytes();
  sink->begin(bytes);
  write_part(structure.bytes(), sink);
  uint32_t checksum = 0;
  const auto copies = std::make_shared<CopyStream>(nullptr);
  for (const Ref<Storage>& storage : contents) write_contents(storage, copies, &checksum, sink);
  write_checksum(checksum, sink);
}

absl::Status Sessions::adopt_shared(Publications::FindPrincipal find, ImageBlocks* blocks, ImageSource* source) try {
  const std::string structure = read_part(kMaxStructureBytes, source);
  ImageInput in(structure);
  std::vector<Ref<Storage>> contents;
  uint64_t left = source->left();
  publications_->read_image(&in, blocks, find, &left, &contents);
  for (size_t count = in.count(); count > 0; --count) {
    const std::string name = in.text();
    std::shared_ptr<SharedTensors> tensors;
    {
      MutexLock lock(mutex_);
      std::shared_ptr<SharedTensors>& entry = shared_[name];
      if (!entry) entry = std::make_shared<SharedTensors>();
      tensors = entry;
    }
    std::shared_ptr<Account> account;
    if (const absl::StatusOr<Principal> principal = find(name); principal.ok()) {
      const uint64_t tenant = options_.tenant != 0 ? options_.tenant : Account::new_tenant();
      account = std::make_shared<Account>(absl::StrCat("the account of ", name, "'s exports"), 0,
                                          Account::DescribeSite{}, tenant, principal->quota);
    }
    tensors->read_image(&in, blocks, account, options_.session_memory_limit, &contents, &left);
  }
  check(in.at_end(), "[image] the image has more than was expected");
  uint32_t checksum = 0;
  const auto copies = std::make_shared<CopyStream>(nullptr);
  for (const Ref<Storage>& storage : contents) read_contents(storage, copies, &checksum, source);
  check_checksum(checksum, source);
  return absl::OkStatus();
} catch (const Error& error) {
  return absl::DataLossError(error.message());
} catch (const std::bad_alloc&) {
  return absl::ResourceExhaustedError("[image] out of memory on the host");
}

}  // namespace tt::server
