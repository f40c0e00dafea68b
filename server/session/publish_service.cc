#include "server/session/publish_service.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "distributed/group_service.h"
#include "engine/device/devices.h"
#include "engine/dispatch/new_results.h"
#include "engine/program/poison.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "server/checkpoint/service.h"

namespace tt::server {
namespace {

using Layout = std::vector<int64_t>;

PublishService& service() {
  auto* found = Context::current().services.find<PublishService>();
  check(found != nullptr, "published tensors require a session");
  return *found;
}

// Waits until the tensor's elements have been computed. Throws the error of their computation.
void finish(const Tensor& tensor) {
  Context& context = Context::current();
  if (tensor.device().type != DeviceType::kCPU) context.stream(tensor.device()).synchronize();
  if (!context.has_async_errors()) return;
  if (const auto poison = context.async_errors().find_error(tensor->storage->pending_errors)) {
    throw Error(poison->kind, poison->message);
  }
}

// Bytes that a collective or a captured graph may still write cannot become read-only.
void check_nothing_writes(const Context& context, const Tensor& tensor) {
  const auto* groups = context.services.find<distributed::GroupService>();
  check(groups == nullptr || !groups->has_unfinished(),
        "[publish] expected that all collectives of the session have been waited for, because one may write to the "
        "tensors");
  check(tensor.device().type == DeviceType::kCPU || !context.has_graphs(),
        "[publish] expected a session without captured graphs, because a replay may write to the tensors");
}

// The elements of a dense tensor, as a range of its storage's bytes.
struct Range {
  uint64_t begin, end;
};

// Returns nothing if the tensor leaves gaps.
std::optional<Range> dense_range(const Tensor& tensor) {
  int64_t last = 0, distinct = 1;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) == 0) return Range{0, 0};
    last += (tensor.size(d) - 1) * tensor.stride(d);
    if (tensor.stride(d) != 0) distinct *= tensor.size(d);
  }
  if (distinct != last + 1) return std::nullopt;
  const uint64_t item = item_size(tensor.dtype());
  const uint64_t begin = static_cast<uint64_t>(tensor->offset) * item;
  return Range{begin, begin + static_cast<uint64_t>(distinct) * item};
}

// A session that opens a publication can read its whole storages.
void check_nothing_else_is_readable(const Publication& publication, const Tensors& tensors) {
  std::vector<std::vector<Range>> ranges(publication.storages.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (const auto range = dense_range(tensors[i])) ranges[publication.tensors[i].storage].push_back(*range);
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    std::sort(ranges[i].begin(), ranges[i].end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    uint64_t covered = 0;
    for (const Range& range : ranges[i]) {
      if (range.begin <= covered) covered = std::max(covered, range.end);
    }
    check(ErrorKind::kValue, covered >= publication.storages[i]->bytes(), "[publish] expected whole storages, got ",
          covered, " of the ", publication.storages[i]->bytes(),
          " bytes of one, all of which other principals could read: publish a clone() of the tensor");
  }
}

}  // namespace

std::string PublishService::unsaved() const {
  if (!is_passed_ && publications_->publishes(caller_)) return "it has published tensors";
  return opened_.empty() ? "" : "it is opening a publication";
}

uint64_t PublishService::publish(Publication publication, const std::vector<std::string>& keys,
                                 const Tensors& tensors) {
  check(ErrorKind::kValue, publication.is_dict ? keys.size() == tensors.size() : tensors.size() == 1,
        "[publish] expected one key per tensor, or one tensor without a key, got ", keys.size(), " keys and ",
        tensors.size(), " tensors");
  const bool is_for_others = publication.is_for_all || !publication.to.empty();
  check(ErrorKind::kValue, publication.is_read_only || !is_for_others,
        "[publish] tensors that may be written are for sessions of the same principal: expected to=None, or "
        "read_only=True");
  Context& context = Context::current();
  std::vector<Ref<Storage>> own;  // of the session
  absl::flat_hash_map<const Storage*, size_t> index;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    check(ErrorKind::kNotImplemented, tensor.device().type != DeviceType::kMeta,
          "[publish] expected a tensor with data, got a meta tensor");
    finish(tensor);
    if (publication.is_read_only && !tensor->storage->is_read_only()) {
      check(!tensor->storage->is_shared(),
            "[publish] expected tensors that no other session can write to, got one that is shared: publish a clone(), "
            "or pass read_only=False");
      check_nothing_writes(context, tensor);
    }
    check(publication.is_read_only || !tensor->storage->is_read_only(),
          "[publish] got a read-only tensor: publish a "
          "clone(), or pass read_only=True");
    const auto [at, is_new] = index.emplace(tensor->storage.get(), own.size());
    if (is_new) own.push_back(tensor->storage);
    publication.tensors.push_back({publication.is_dict ? keys[i] : "", at->second, tensor.meta()});
    publication.tensors.back().meta.requires_grad = false;
  }
  publication.storages = own;
  if (is_for_others) check_nothing_else_is_readable(publication, tensors);
  for (size_t i = 0; i < own.size(); ++i) {
    own[i]->make_shareable();
    publication.storages[i] = Storage::over(own[i], caller_.owner->account());
  }
  const uint64_t bytes = publication.bytes();
  const bool is_read_only = publication.is_read_only;
  // A checkpoint that is being written needs the values before another session changes them.
  if (auto* checkpoints = context.services.find<CheckpointService>(); checkpoints != nullptr && !is_read_only) {
    for (const Tensor& tensor : tensors) checkpoints->snapshots().before_write(tensor);
  }
  publications_->publish(caller_, std::move(publication), [&] {
    for (const Ref<Storage>& storage : own) is_read_only ? storage->freeze() : storage->share();
  });
  return bytes;
}

PublishService::Opened PublishService::open(absl::string_view name, absl::string_view principal) {
  check(opened_.size() < kMaxOpened, "expected at most ", kMaxOpened,
        " publications whose tensors were described and not received");
  Opened opened{last_opened_ + 1, publications_->find(caller_, name, principal)};
  const std::vector<Ref<Storage>>& published = opened.publication->storages;
  Pending pending{{}, published.size()};
  pending.storages.reserve(published.size());
  for (const Ref<Storage>& storage : published) {
    pending.storages.push_back(Storage::over(storage, Context::current().account));
  }
  ++last_opened_;
  if (pending.left == 0) return opened;
  opened_storages_ += pending.storages.size();
  opened_.emplace(opened.number, std::move(pending));
  return opened;
}

void PublishService::cancel(int64_t number) {
  const auto found = opened_.find(number);
  if (found == opened_.end()) return;
  opened_storages_ -= found->second.storages.size();
  opened_.erase(found);
}

Ref<Storage> PublishService::take(int64_t number, int64_t index) {
  const auto found = opened_.find(number);
  const bool exists = found != opened_.end() && index >= 0 &&
                      static_cast<size_t>(index) < found->second.storages.size() &&
                      found->second.storages[static_cast<size_t>(index)];
  check(ErrorKind::kValue, exists, "expected a storage that was opened and not received, got ", number, ".", index);
  Ref<Storage> storage = std::move(found->second.storages[static_cast<size_t>(index)]);
  if (--found->second.left == 0) cancel(number);
  return storage;
}

namespace {

std::vector<std::string> lines_of(absl::string_view text) {
  if (text.empty()) return {};
  return absl::StrSplit(text, '\n');
}

// Counts the lines before it makes strings of them, because a client may send many that are empty.
std::vector<std::string> keys_of(const Tensor& keys, size_t tensors) {
  check(ErrorKind::kValue,
        keys.dtype() == DType::kUInt8 && keys.device().type == DeviceType::kCPU && keys.is_contiguous(),
        "expected a contiguous uint8 tensor on the CPU as `keys`, got ", describe(keys.meta()));
  const auto bytes = static_cast<size_t>(keys.numel());
  check(ErrorKind::kValue, bytes <= 2 * Publications::kMaxTextBytes, "expected at most ",
        2 * Publications::kMaxTextBytes, " bytes of keys, got ", bytes);
  const absl::string_view text = bytes == 0 ? absl::string_view() : absl::string_view(keys.data_as<char>(), bytes);
  const size_t lines = text.empty() ? 0 : static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  check(ErrorKind::kValue, lines == tensors, "expected one key per tensor, got ", lines, " keys and ", tensors,
        " tensors");
  return lines_of(text);
}

absl::string_view text_or_empty(const Arg& text) {
  return text.is_none() ? absl::string_view() : absl::string_view(text.string().data(), text.string().size());
}

Tensor on_cpu(DType dtype, const void* bytes, size_t count) {
  Tensor tensor = empty({static_cast<int64_t>(count)}, dtype, Device{});
  if (count != 0) std::memcpy(tensor.data(), bytes, count * item_size(dtype));
  return tensor;
}

void publish(Call& call) {
  Publication publication;
  std::vector<std::string> keys;
  if (!call.args[1].is_none()) keys = keys_of(call.tensor(1), call.args[0].list().size());
  publication.is_dict = !call.args[1].is_none();
  publication.name = std::string(call.args[2].string());
  publication.to = lines_of(text_or_empty(call.args[3]));
  publication.is_for_all = std::erase(publication.to, "*") != 0;
  publication.is_read_only = call.args[4].to_bool();
  publication.persists = call.args[5].to_bool();
  Tensors tensors;
  for (const TensorMeta* meta : call.args[0].list()) tensors.push_back(Tensor::from(meta));
  const uint64_t bytes = service().publish(std::move(publication), keys, tensors);
  allocate_outputs(call);
  *call.outputs[0].data_as<int64_t>() = static_cast<int64_t>(bytes);
}

void set_description(const PublishService::Opened& opened, Call& call) {
  const Publication& publication = *opened.publication;
  Layout layout = {opened.number, publication.is_dict, publication.is_read_only,
                   static_cast<int64_t>(publication.storages.size()), static_cast<int64_t>(publication.tensors.size())};
  for (const Ref<Storage>& storage : publication.storages) {
    layout.push_back(static_cast<int64_t>(storage->bytes()));
    layout.push_back(storage->device().encode());
  }
  std::vector<absl::string_view> keys;
  for (const PublishedTensor& tensor : publication.tensors) {
    const TensorMeta& meta = tensor.meta;
    layout.insert(layout.end(),
                  {static_cast<int64_t>(tensor.storage), static_cast<int64_t>(meta.dtype), meta.offset, meta.dim()});
    layout.insert(layout.end(), meta.sizes.begin(), meta.sizes.end());
    layout.insert(layout.end(), meta.strides.begin(), meta.strides.end());
    keys.push_back(tensor.key);
  }
  const std::string text = absl::StrJoin(keys, "\n");
  call.outputs.assign(1, on_cpu(DType::kInt64, layout.data(), layout.size()));
  call.outputs.push_back(on_cpu(DType::kUInt8, text.data(), text.size()));
}

void open_publication(Call& call) {
  const PublishService::Opened opened = service().open(text_or_empty(call.args[0]), text_or_empty(call.args[1]));
  try {
    set_description(opened, call);
  } catch (const Error&) {
    service().cancel(opened.number);
    throw;
  }
}

void opened_storage(Call& call) {
  const TensorMeta& meta = call.inferred.outputs[0];
  const Ref<Storage> storage = service().take(call.args[0].integer, call.args[1].integer);
  check(ErrorKind::kValue, storage->device() == meta.device, "expected the device of the published storage, ",
        to_string(storage->device()), ", got ", to_string(meta.device));
  check(ErrorKind::kValue, static_cast<uint64_t>(meta.numel()) <= storage->bytes() / item_size(meta.dtype),
        "expected at most the ", storage->bytes(), " bytes of the published storage, got ", describe(meta));
  if (meta.device.type != DeviceType::kCPU && storage->data()) {
    Devices::instance().allocator(meta.device).record_stream(storage->data(), Context::current().stream(meta.device));
  }
  call.outputs.assign(1, Tensor(new TensorImpl(meta, storage)));
}

void list_publications(Call& call) {
  const std::string text = service().list();
  call.outputs.assign(1, on_cpu(DType::kUInt8, text.data(), text.size()));
}

void unpublish(Call& call) {
  service().unpublish(text_or_empty(call.args[0]), text_or_empty(call.args[1]));
  allocate_outputs(call);
  *call.outputs[0].data_as<int64_t>() = 1;
}

}  // namespace

void register_publish_operators(Dispatcher& dispatcher) {
  for (Key key : {Key::kCPU, Key::kCUDA}) {
    dispatcher.set(op_id::kPublish, key, &with_new_results<&publish>);
    dispatcher.set(op_id::kOpenPublication, key, &with_new_results<&open_publication>);
    dispatcher.set(op_id::kOpenedStorage, key, &with_new_results<&opened_storage>);
    dispatcher.set(op_id::kListPublications, key, &with_new_results<&list_publications>);
    dispatcher.set(op_id::kUnpublish, key, &with_new_results<&unpublish>);
  }
}

}  // namespace tt::server
