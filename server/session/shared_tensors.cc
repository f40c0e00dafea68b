#include "server/session/shared_tensors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/device/devices.h"
#include "engine/dispatch/new_results.h"
#include "engine/program/poison.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "server/checkpoint/service.h"

namespace tt::server {
namespace {

using distributed::OfferedValue;
using distributed::OfferTable;

ShareService& service() {
  auto* found = Context::current().services.find<ShareService>();
  check(found != nullptr, "shared tensors require a session");
  return *found;
}

}  // namespace

std::shared_ptr<OfferTable> SharedTensors::table() {
  MutexLock lock(mutex_);
  if (!table_) table_ = std::make_shared<OfferTable>();
  return table_;
}

ShareService::~ShareService() {
  if (OfferTable* table = offers_.used_table()) table->limit_all(offers_.owner(), kAfterSession, max_bytes_);
}

void ShareService::add(const std::string& capability, const Tensor& tensor, double timeout) {
  Context& context = Context::current();
  OfferedValue value{detach(tensor), {}};
  if (tensor.device().type != DeviceType::kCPU) context.stream(tensor.device()).synchronize();
  if (context.has_async_errors()) {
    if (const auto poison = context.async_errors().find_error(tensor->storage->pending_errors)) {
      value.error = Error(poison->kind, poison->message);
    }
  }
  // A checkpoint that is being written needs the values before another session changes them.
  if (auto* checkpoints = context.services.find<CheckpointService>()) checkpoints->snapshots().before_write(tensor);
  tensor->storage->share();
  offers_.offer(capability, std::move(value), timeout);
}

Ref<Storage> ShareService::take(const std::string& capability) {
  distributed::check_ok(OfferTable::check_capability(capability));
  absl::StatusOr<OfferTable::Value> taken = absl::NotFoundError("");
  constexpr auto kAtOnce = OfferTable::Milliseconds(1000);
  // The callback runs during take(), or never: a wait that take() starts is cancelled. If another thread completes it
  // first, that thread holds the last reference to the result.
  auto result = std::make_shared<std::pair<Mutex, absl::StatusOr<OfferTable::Value>>>();
  result->second = absl::NotFoundError("");
  const uint64_t wait = offers_.table().take(capability, kAtOnce, [result](absl::StatusOr<OfferTable::Value> value) {
    MutexLock lock(result->first);
    result->second = std::move(value);
  });
  if (wait != 0) offers_.table().cancel(wait);
  {
    MutexLock lock(result->first);
    taken = std::move(result->second);
  }
  check(taken.ok() && *taken,
        "no tensor is shared under this capability: it was received before, its time has passed, the session that "
        "shared it has ended, or its process uses another engine or another token");
  if ((*taken)->error) throw *(*taken)->error;
  return (*taken)->tensor->storage;
}

namespace {

// What an export has besides its tensor.
void write_rest(const OfferTable::Offer& offer, ImageOutput* out) {
  out->text(offer.capability);
  out->number(static_cast<uint64_t>(offer.left.count()));
  const std::optional<Error>& error = offer.value->error;
  out->flag(error.has_value());
  if (!error) return;
  out->number(static_cast<uint64_t>(error->kind()));
  out->text(error->message());
}

struct ReadOffer {
  std::string capability;
  OfferTable::Milliseconds left;
  OfferedValue value;
};

ReadOffer read_rest(ImageInput* in) {
  ReadOffer read;
  read.capability = in->text();
  read.left = OfferTable::Milliseconds(in->number(static_cast<uint64_t>(OfferTable::kMaxTimeout.count())));
  if (in->flag()) {
    const auto kind = static_cast<ErrorKind>(in->number(static_cast<uint64_t>(ErrorKind::kPermission)));
    read.value.error = Error(kind, in->text());
  }
  distributed::check_ok(OfferTable::check_capability(read.capability));
  return read;
}

}  // namespace

void ShareService::write_image(ImageTensors* tensors, ImageOutput* out) const {
  std::vector<OfferTable::Offer> own;
  if (offers_.used_table() != nullptr) own = offers_.used_table()->offers();
  std::erase_if(own, [&](const OfferTable::Offer& offer) { return offer.owner != offers_.owner(); });
  out->number(own.size());
  for (const OfferTable::Offer& offer : own) {
    write_rest(offer, out);
    out->number(tensors->number(offer.value->tensor));
  }
}

void ShareService::read_image(ImageInput* in, const ImageObjects& objects) {
  for (size_t count = in->count(); count > 0; --count) {
    ReadOffer read = read_rest(in);
    read.value.tensor = objects.tensor(in);
    check(read.value.error || read.value.tensor, "[image] expected an exported tensor");
    const double seconds = std::chrono::duration<double>(read.left).count();
    offers_.offer(read.capability, std::move(read.value), std::max(seconds, 0.001));
  }
}

void SharedTensors::write_image(ImageBlocks* blocks, ImageOutput* out, std::vector<Ref<Storage>>* contents) {
  std::vector<OfferTable::Offer> left;
  {
    MutexLock lock(mutex_);
    if (table_) left = table_->offers();
  }
  std::erase_if(left, [](const OfferTable::Offer& offer) { return offer.has_owner; });
  out->number(left.size());
  for (const OfferTable::Offer& offer : left) {
    write_rest(offer, out);
    const Tensor& tensor = offer.value->tensor;
    out->flag(static_cast<bool>(tensor));
    if (!tensor) continue;
    if (write_storage(tensor->storage, blocks, out)) contents->push_back(tensor->storage);
    out->meta(tensor.meta());
  }
}

void SharedTensors::read_image(ImageInput* in, ImageBlocks* blocks, const std::shared_ptr<Account>& account,
                               uint64_t max_bytes, std::vector<Ref<Storage>>* contents, uint64_t* left) {
  const size_t count = in->count();
  if (count == 0) return;
  const std::shared_ptr<OfferTable> offers = table();
  const uint64_t owner = offers->new_owner();
  Context context;
  context.account = account;
  const absl::Cleanup close = [&context] { context.close(); };
  const ContextScope scope(&context);
  for (size_t i = 0; i < count; ++i) {
    ReadOffer read = read_rest(in);
    if (in->flag()) {
      Ref<Storage> storage = read_storage(in, blocks, left, contents);
      read.value.tensor = tensor_in_image(in->meta(), std::move(storage));
    }
    check(read.value.error || read.value.tensor, "[image] expected an exported tensor");
    if (!account) continue;
    distributed::check_ok(
        offers->offer(read.capability, std::make_shared<const OfferedValue>(std::move(read.value)), owner, read.left));
  }
  offers->limit_all(owner, ShareService::kAfterSession, max_bytes);
}

void ShareService::skipped(const Op& op, Args args, const Error& error, uint32_t /*site*/) {
  offers_.offer_error(op_id::kShareExport, op, args, error);
}

namespace {

void share_export(Call& call) {
  const Tensor input = call.tensor(0);
  service().add(std::string(call.args[1].string()), input, call.args[2].to_double());
  allocate_outputs(call);
  *call.outputs[0].data_as<int64_t>() = static_cast<int64_t>(input->storage->bytes());
}

void share_import(Call& call) {
  const TensorMeta& meta = call.inferred.outputs[0];
  const Ref<Storage> exported = service().take(std::string(call.args[0].string()));
  check(ErrorKind::kValue, exported->device() == meta.device, "expected the device of the shared tensor, ",
        to_string(exported->device()), ", got ", to_string(meta.device));
  check(ErrorKind::kValue, static_cast<uint64_t>(meta.numel()) <= exported->bytes() / item_size(meta.dtype),
        "expected at most the ", exported->bytes(), " bytes of the shared storage, got ", describe(meta));
  Ref<Storage> storage = Storage::over(exported, Context::current().account);
  if (meta.device.type != DeviceType::kCPU && storage->data()) {
    Devices::instance().allocator(meta.device).record_stream(storage->data(), Context::current().stream(meta.device));
  }
  call.outputs.assign(1, Tensor(new TensorImpl(meta, std::move(storage))));
}

}  // namespace

void register_shared_tensors(Dispatcher& dispatcher) {
  for (Key key : {Key::kCPU, Key::kCUDA}) {
    dispatcher.set(op_id::kShareExport, key, &with_new_results<&share_export>);
    dispatcher.set(op_id::kShareImport, key, &with_new_results<&share_import>);
  }
}

}  // namespace tt::server
