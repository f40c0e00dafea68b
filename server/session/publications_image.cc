// Images of publications: what a process that replaces this one continues.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "server/session/publications.h"

namespace tt::server {
namespace {

void write(const Publication& publication, ImageBlocks* blocks, ImageOutput* out, std::vector<Ref<Storage>>* contents) {
  out->text(publication.name);
  out->flag(publication.is_dict);
  out->flag(publication.is_read_only);
  out->flag(publication.persists);
  out->flag(publication.is_for_all);
  out->number(publication.to.size());
  for (const std::string& principal : publication.to) out->text(principal);
  out->number(publication.storages.size());
  for (const Ref<Storage>& storage : publication.storages) {
    if (publication.is_read_only) storage->freeze();  // it was made before the bytes became read-only
    if (write_storage(storage, blocks, out)) contents->push_back(storage);
  }
  out->number(publication.tensors.size());
  for (const PublishedTensor& tensor : publication.tensors) {
    out->text(tensor.key);
    out->number(tensor.storage);
    out->meta(tensor.meta);
  }
}

Publication read(ImageInput* in, ImageBlocks* blocks, uint64_t* left, std::vector<Ref<Storage>>* contents) {
  Publication publication;
  publication.name = in->text();
  publication.is_dict = in->flag();
  publication.is_read_only = in->flag();
  publication.persists = in->flag();
  publication.is_for_all = in->flag();
  for (size_t count = in->count(); count > 0; --count) publication.to.push_back(in->text());
  for (size_t count = in->count(); count > 0; --count) {
    publication.storages.push_back(read_storage(in, blocks, left, contents));
    const Storage& storage = *publication.storages.back();
    check(storage.bytes() == 0 || storage.is_read_only() == publication.is_read_only,
          "[image] expected bytes that are read-only, or shared");
  }
  for (size_t count = in->count(); count > 0; --count) {
    PublishedTensor tensor;
    tensor.key = in->text();
    tensor.storage = static_cast<size_t>(in->number());
    check(tensor.storage < publication.storages.size(), "[image] expected a storage of the publication");
    tensor.meta = in->meta();
    tensor_in_image(tensor.meta, publication.storages[tensor.storage]);  // checks the layout
    publication.tensors.push_back(std::move(tensor));
  }
  return publication;
}

}  // namespace

void Publications::write_image(absl::FunctionRef<bool(uint64_t session)> is_passed, ImageBlocks* blocks,
                               ImageOutput* out, std::vector<Ref<Storage>>* contents) const {
  MutexLock lock(mutex_);
  out->number(owners_.size());
  for (const auto& [name, owner] : owners_) {
    std::vector<const Entry*> passed;
    for (const auto& [key, entry] : owner->entries_) {
      if (entry.publication->persists || is_passed(entry.session)) passed.push_back(&entry);
    }
    out->text(name);
    out->number(passed.size());
    for (const Entry* entry : passed) {
      out->number(entry->session);
      write(*entry->publication, blocks, out, contents);
    }
  }
}

void Publications::read_image(ImageInput* in, ImageBlocks* blocks, FindPrincipal find, uint64_t* left,
                              std::vector<Ref<Storage>>* contents) {
  for (size_t owners = in->count(); owners > 0; --owners) {
    const std::string name = in->text();
    const size_t count = in->count();
    if (count == 0) continue;
    const absl::StatusOr<Principal> principal = find(name);
    check(principal.ok(), "[image] ", principal.status().message());
    const std::shared_ptr<Owner> owner = this->owner(*principal);
    Context context;
    context.account = owner->account();
    {
      const ContextScope scope(&context);
      for (size_t i = 0; i < count; ++i) {
        const uint64_t session = in->number();
        add({owner, session}, read(in, blocks, left, contents), [] {});
      }
    }
    context.close();
  }
}

}  // namespace tt::server
