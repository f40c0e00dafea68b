#include "engine/session/image.h"

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/device/devices.h"
#include "engine/memory/alloc_scope.h"
#include "engine/memory/history.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

// A layout's sizes, strides, offset and extent in elements, so that its extent in bytes is below 2^63.
constexpr int64_t kMaxExtent = std::numeric_limits<int64_t>::max() >> 5;

// Flags of an error.
constexpr uint64_t kRetriable = 1, kKeepsTargets = 2;

[[noreturn]] void damaged(const char* what) { fail(ErrorKind::kRuntime, "[image] expected ", what); }

void require(bool ok, const char* what) {
  if (!ok) damaged(what);
}

// Throws unless the layout's elements are within a storage of `bytes` bytes.
void check_extent(const TensorMeta& meta, size_t bytes) {
  if (meta.numel() == 0) return;
  int64_t last = meta.offset;
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    const int64_t steps = meta.sizes[i] - 1;
    require(meta.strides[i] == 0 || steps <= (kMaxExtent - last) / meta.strides[i], "a layout within its storage");
    last += steps * meta.strides[i];
  }
  require((static_cast<uint64_t>(last) + 1) * item_size(meta.dtype) <= bytes, "a layout within its storage");
}

// Flags of a storage.
constexpr uint64_t kReadOnly = 1, kShared = 2;

// Returns a storage over shared bytes, also if the account has another one.
Ref<Storage> storage_beside(const Ref<Storage>& shared) {
  const std::shared_ptr<Account>& account = AllocScope::current().account;
  const Ref<Storage> storage = Storage::over(shared, account);
  return storage == shared ? Storage::over(Storage::over(shared, nullptr), account) : storage;
}

bool has_contents(const Storage& storage) { return storage.device().type != DeviceType::kMeta && storage.bytes() != 0; }

}  // namespace

uint64_t ImageBlocks::number(const Storage& storage) const {
  const auto found = numbers_.find(storage.data());
  return found == numbers_.end() ? 0 : found->second;
}

void ImageBlocks::add(Ref<Storage> storage) {
  storages_.push_back(std::move(storage));
  numbers_.emplace(storages_.back()->data(), storages_.size());
}

const Ref<Storage>& ImageBlocks::at(uint64_t number) const {
  require(number > 0 && number <= storages_.size(), "shared bytes of an earlier image");
  return storages_[number - 1];
}

void ImageBlocks::truncate(size_t size) {
  for (; storages_.size() > size; storages_.pop_back()) numbers_.erase(storages_.back()->data());
}

bool write_storage(const Ref<Storage>& storage, ImageBlocks* blocks, ImageOutput* out) {
  check(ErrorKind::kNotImplemented, blocks != nullptr || !storage->is_shared(),
        "the memory of one of its tensors is shared");
  const bool is_block = blocks != nullptr && ImageBlocks::is_shared(*storage);
  const uint64_t block = is_block ? blocks->number(*storage) : 0;
  out->number(block);
  out->number(storage->version());
  if (block != 0) return false;
  // The next engine may have other device libraries.
  check(ErrorKind::kNotImplemented, !is_plugin(storage->device().type), "a tensor on ", storage->device(),
        ", a device of a device library, cannot be part of an image");
  out->signed_number(storage->device().encode());
  out->number(storage->bytes());
  out->number((storage->is_read_only() ? kReadOnly : 0) | (storage->is_shared() ? kShared : 0));
  out->flag(is_block);
  if (is_block) blocks->add(storage);
  return has_contents(*storage);
}

Ref<Storage> read_storage(ImageInput* in, ImageBlocks* blocks, uint64_t* left, std::vector<Ref<Storage>>* contents) {
  const uint64_t block = in->number();
  const auto version = static_cast<uint32_t>(in->number(UINT32_MAX));
  require(block == 0 || blocks != nullptr, "no bytes of another image");
  Ref<Storage> storage;
  if (block != 0) {
    storage = storage_beside(blocks->at(block));
  } else {
    const Device device = decode_device(in->signed_number());
    require(device.type == DeviceType::kMeta || Devices::instance().has(device), "a device that this engine has");
    const uint64_t bytes = in->number(uint64_t{1} << 62);
    const uint64_t flags = in->number(kReadOnly | kShared);
    const bool is_block = in->flag();
    require(!is_block || (blocks != nullptr && flags != 0 && bytes != 0), "no shared bytes");
    require(device.type == DeviceType::kMeta || bytes <= *left, "as many bytes as its storages have");
    storage = make_ref<Storage>(device, static_cast<size_t>(bytes));
    if (flags & kReadOnly) {
      storage->freeze();
    } else if (flags & kShared) {
      storage->share();
    }
    if (is_block) blocks->add(storage);
    if (has_contents(*storage)) {
      contents->push_back(storage);
      *left -= bytes;
    }
  }
  // The versions at which tensors were saved are those of the session's first engine.
  while (storage->version() != version) storage->bump_version();  // compiled to an assignment
  return storage;
}

void ImageOutput::number(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
  bytes_.push_back(static_cast<char>(value));
}

void ImageOutput::signed_number(int64_t value) {
  number(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

void ImageOutput::real(double value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes_.append(raw, sizeof raw);
}

void ImageOutput::text(std::string_view value) {
  number(value.size());
  bytes_.append(value);
}

void ImageOutput::sizes(SizesView values) {
  number(values.size());
  for (int64_t value : values) signed_number(value);
}

void ImageOutput::meta(const TensorMeta& meta) {
  number(static_cast<uint64_t>(meta.dtype));
  signed_number(meta.device.encode());
  flag(meta.requires_grad);
  sizes(meta.sizes);
  sizes(meta.strides);
  signed_number(meta.offset);
}

uint64_t ImageInput::number() {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes_.size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>(bytes_[i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    bytes_.remove_prefix(i + 1);
    return value;
  }
  damaged("a number");
}

uint64_t ImageInput::number(uint64_t max) {
  const uint64_t value = number();
  require(value <= max, "a smaller number");
  return value;
}

int64_t ImageInput::signed_number() {
  const uint64_t value = number();
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

double ImageInput::real() {
  double value = 0;
  require(bytes_.size() >= sizeof value, "a number");
  std::memcpy(&value, bytes_.data(), sizeof value);
  bytes_.remove_prefix(sizeof value);
  return value;
}

std::string_view ImageInput::view() {
  const uint64_t size = number();
  require(size <= bytes_.size(), "a text");
  const std::string_view text = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return text;
}

Sizes ImageInput::sizes() {
  const size_t dims = count();
  require(dims <= static_cast<size_t>(kMaxDims), "fewer dimensions");
  Sizes sizes;
  for (size_t i = 0; i < dims; ++i) {
    sizes.push_back(signed_number());
    require(sizes.back() >= 0 && sizes.back() <= kMaxExtent, "a size");
  }
  return sizes;
}

TensorMeta ImageInput::meta() {
  TensorMeta meta;
  meta.dtype = static_cast<DType>(number(kNumDTypes - 1));
  meta.device = decode_device(signed_number());
  meta.requires_grad = flag();
  meta.sizes = sizes();
  meta.strides = sizes();
  require(meta.sizes.size() == meta.strides.size(), "as many strides as sizes");
  int64_t elements = 1;
  for (int64_t size : meta.sizes) {
    require(size == 0 || elements <= kMaxExtent / size, "a smaller tensor");
    elements *= size;
  }
  meta.offset = signed_number();
  require(meta.offset >= 0 && meta.offset <= kMaxExtent, "an offset");
  return meta;
}

Tensor tensor_in_image(const TensorMeta& meta, Ref<Storage> storage) {
  require(meta.device == storage->device(), "a tensor on its storage's device");
  if (meta.device.type != DeviceType::kMeta) check_extent(meta, storage->bytes());
  return Tensor(new TensorImpl(meta, std::move(storage)));
}

uint64_t ImageTensors::number(const Tensor& tensor) {
  if (!tensor) return 0;
  const auto [at, is_new] = tensor_numbers_.try_emplace(tensor.get(), tensors_.size() + 1);
  if (!is_new) return at->second;
  const uint64_t number = at->second;
  tensors_.push_back(tensor);
  if (storage_numbers_.try_emplace(tensor->storage.get(), storages_.size() + 1).second) {
    storages_.push_back(tensor->storage);
  }
  if (tensor->base) this->number(Tensor(tensor->base.get()));
  return number;
}

uint64_t ImageTensors::number(const PoisonRef& poison) {
  if (!poison) return 0;
  const auto [at, is_new] = poison_numbers_.try_emplace(poison.get(), poisons_.size() + 1);
  if (is_new) poisons_.push_back(poison);
  return at->second;
}

uint64_t ImageTensors::number_of(const Storage* storage) const {
  const auto found = storage_numbers_.find(storage);
  check(found != storage_numbers_.end(), "[image] expected the storage of a tensor of the image");
  return found->second;
}

std::vector<Ref<Storage>> ImageTensors::write(ImageBlocks* blocks, ImageOutput* out) const {
  std::vector<Ref<Storage>> contents;
  out->number(storages_.size());
  for (const Ref<Storage>& storage : storages_) {
    if (write_storage(storage, blocks, out)) contents.push_back(storage);
  }
  out->number(tensors_.size());
  for (const Tensor& tensor : tensors_) {
    out->meta(tensor.meta());
    out->number(storage_numbers_.at(tensor->storage.get()));
    out->number(tensor->base ? tensor_numbers_.at(tensor->base.get()) : 0);
  }
  out->number(poisons_.size());
  for (const PoisonRef& poison : poisons_) {
    out->number(static_cast<uint64_t>(poison->kind));
    out->text(poison->message);
    out->text(poison->op);
    out->number(poison->site);
    out->number((poison->retriable ? kRetriable : 0) | (poison->keeps_targets ? kKeepsTargets : 0));
  }
  return contents;
}

ImageObjects::ImageObjects(ImageInput* in, ImageBlocks* blocks, uint64_t max_bytes) {
  const size_t storages = in->count();
  uint64_t left = max_bytes;
  for (size_t i = 0; i < storages; ++i) storages_.push_back(read_storage(in, blocks, &left, &contents_));
  const size_t tensors = in->count();
  std::vector<uint64_t> bases;
  for (size_t i = 0; i < tensors; ++i) {
    const TensorMeta meta = in->meta();
    tensors_.push_back(tensor_in_image(meta, this->storage(in)));
    bases.push_back(in->number(tensors));
  }
  for (size_t i = 0; i < tensors; ++i) {
    if (bases[i] == 0) continue;
    TensorImpl* const base = tensors_[bases[i] - 1].get();
    // A view's base is no view itself, so bases form no cycles.
    require(bases[bases[i] - 1] == 0 && base->storage == tensors_[i]->storage, "a base that is not a view");
    tensors_[i]->set_base(Ref<TensorImpl>(base));
  }
  const size_t poisons = in->count();
  for (size_t i = 0; i < poisons; ++i) {
    const auto kind = static_cast<ErrorKind>(in->number(static_cast<uint64_t>(ErrorKind::kPermission)));
    std::string message = in->text();
    const std::string_view op = in->view();
    const auto site = static_cast<uint32_t>(in->number(UINT32_MAX));
    auto poison = std::const_pointer_cast<Poison>(make_poison(kind, std::move(message), op, site));
    const uint64_t flags = in->number(kRetriable | kKeepsTargets);
    poison->retriable = (flags & kRetriable) != 0;
    poison->keeps_targets = (flags & kKeepsTargets) != 0;
    poisons_.push_back(std::move(poison));
  }
}

Tensor ImageObjects::tensor(ImageInput* in) const {
  const uint64_t number = in->number(tensors_.size());
  return number == 0 ? Tensor() : tensors_[number - 1];
}

Tensor ImageObjects::defined_tensor(ImageInput* in) const {
  Tensor found = tensor(in);
  require(static_cast<bool>(found), "a tensor");
  return found;
}

PoisonRef ImageObjects::poison(ImageInput* in) const {
  const uint64_t number = in->number(poisons_.size());
  return number == 0 ? nullptr : poisons_[number - 1];
}

const Ref<Storage>& ImageObjects::storage(ImageInput* in) const {
  const uint64_t number = in->number(storages_.size());
  require(number != 0, "a storage");
  return storages_[number - 1];
}

void write_slots(const SlotTable& slots, ImageTensors* tensors, ImageOutput* out) {
  out->number(slots.size());
  slots.visit([&](Slot slot, const SlotValue& value) {
    out->number(slot);
    out->number(tensors->number(value.tensor));
    out->number(tensors->number(value.poison));
  });
}

void read_slots(ImageInput* in, const ImageObjects& objects, SlotTable* slots) {
  const size_t count = in->count();
  for (size_t i = 0; i < count; ++i) {
    const Slot slot = in->number();
    SlotValue value;
    value.tensor = objects.tensor(in);
    value.poison = objects.poison(in);
    slots->put(slot, std::move(value));
  }
}

std::string unsaved(const Context& context) {
  if (context.has_graphs()) return "it has captured graphs";
  if (context.profiler() != nullptr) return "a profile is being recorded";
  if (!context.events.empty()) return "it has recorded events of devices";
  if (context.saved_tensors != SavedTensors::kShared) return "it is inside saved_tensors_hooks";
  const MemoryHistory* history = context.account ? context.account->history() : nullptr;
  if (history != nullptr && history->is_active()) return "it records a memory history";
  return context.services.unsaved();
}

namespace {

void write_dtype(const std::optional<DType>& dtype, ImageOutput* out) {
  out->number(dtype ? static_cast<uint64_t>(*dtype) + 1 : 0);
}

constexpr uint64_t kProductTf32 = 1, kNoConvolutionTf32 = 2;

std::optional<DType> read_dtype(ImageInput* in) {
  const uint64_t number = in->number(kNumDTypes);
  if (number == 0) return std::nullopt;
  return static_cast<DType>(number - 1);
}

}  // namespace

void write_context(const Context& context, ImageTensors* tensors, ImageOutput* out) {
  out->number(context.generator.seed);
  out->number(context.generator.offset);
  out->signed_number(context.max_threads);
  out->flag(context.detect_anomaly);
  // One number, as older engines write it; they cannot read an image whose convolutions may not use TF32.
  out->number((context.allow_tf32 ? kProductTf32 : 0) | (context.allow_convolution_tf32 ? 0 : kNoConvolutionTf32));
  const AutocastState& autocast = context.autocast.state;
  write_dtype(autocast.cpu, out);
  write_dtype(autocast.cuda, out);
  out->flag(autocast.cache);
  out->number(context.autocast.casts().size());
  for (const auto& [source, kept] : context.autocast.casts()) {
    out->number(tensors->number(kept.source));
    out->number(tensors->number(kept.cast));
    out->number(kept.version);
  }
}

void read_context(ImageInput* in, const ImageObjects& objects, Context* context) {
  context->generator.seed = in->number();
  context->generator.offset = in->number();
  const int64_t threads = in->signed_number();
  require(threads >= 0 && threads <= std::numeric_limits<int>::max(), "a number of threads");
  context->max_threads = static_cast<int>(threads);
  context->detect_anomaly = in->flag();
  const uint64_t tf32 = in->number(kProductTf32 | kNoConvolutionTf32);
  context->allow_tf32 = (tf32 & kProductTf32) != 0;
  context->allow_convolution_tf32 = (tf32 & kNoConvolutionTf32) == 0;
  context->autocast.state.cpu = read_dtype(in);
  context->autocast.state.cuda = read_dtype(in);
  context->autocast.state.cache = in->flag();
  const size_t casts = in->count();
  for (size_t i = 0; i < casts; ++i) {
    Tensor source = objects.defined_tensor(in);
    Tensor cast = objects.defined_tensor(in);
    context->autocast.keep({std::move(source), std::move(cast), static_cast<uint32_t>(in->number(UINT32_MAX))});
  }
}

}  // namespace tt
