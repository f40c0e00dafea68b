#include "autograd/nodes/saved_bytes.h"

namespace tt::autograd {
namespace {

void check_base(const Tensor& base) {
  check(base.is_contiguous() && base->offset == 0, "expected a contiguous tensor at the start of its storage, got ",
        describe(base.meta()), " at element ", base->offset);
}

}  // namespace

SharedBytes::SharedBytes(Tensor base) : base_(std::move(base)), meta_(base_.meta()), version_(base_.version()) {
  base_version_ = version_;
}

uint32_t SharedBytes::version() const { return base_ ? version_ + (base_.version() - base_version_) : version_; }

Tensor SharedBytes::view(const TensorMeta& meta, absl::string_view user) const {
  if (error_) throw Error(error_->kind(), error_->message());
  check(static_cast<bool>(base_), "[", std::string(user), "] expected the bytes of ", describe(meta),
        ", which were released after the forward pass and not restored");
  return alias(base_, meta);
}

void SharedBytes::release() {
  version_ = version();
  base_ = Tensor();
}

void SharedBytes::restore(Tensor base) {
  check_base(base);
  check(base.numel() == meta_.numel() && base.dtype() == meta_.dtype && base.device() == meta_.device, "expected ",
        meta_.numel(), " elements like those that were released, ", describe(meta_), ", got ", describe(base.meta()));
  version_ = version();
  base_ = std::move(base);
  base_version_ = base_.version();
  error_.reset();
}

void SharedBytes::fail(const Error& error) { error_ = std::make_unique<const Error>(error.kind(), error.message()); }

SharedBytes& SavedBytes::at(int64_t number) const {
  auto found = by_number_.find(number);
  check(found != by_number_.end(), "no watched tensor has the number ", number);
  return *found->second;
}

void SavedBytes::watch(int64_t number, const Tensor& base) {
  check_base(base);
  check(by_number_.size() < kMaxWatched, "too many watched tensors, got ", by_number_.size());
  check(!by_number_.contains(number), "the number ", number, " is in use");
  check(!by_storage_.contains(base->storage.get()), "the tensor's storage is watched already");
  Ref<SharedBytes> bytes(new SharedBytes(detach(base)));
  by_storage_.emplace(bytes->storage(), bytes);
  by_number_.emplace(number, std::move(bytes));
}

void SavedBytes::release(int64_t number) {
  SharedBytes& bytes = at(number);
  by_storage_.erase(bytes.storage());
  bytes.release();
}

void SavedBytes::restore(int64_t number, Tensor base) {
  SharedBytes& bytes = at(number);
  check(!by_storage_.contains(base->storage.get()) || bytes.storage() == base->storage.get(),
        "the tensor's storage is watched already");
  const Storage* before = bytes.storage();
  bytes.restore(detach(base));
  by_storage_.erase(before);
  by_storage_.emplace(bytes.storage(), by_number_.at(number));
}

void SavedBytes::fail(int64_t number, const Error& error) {
  if (auto found = by_number_.find(number); found != by_number_.end()) found->second->fail(error);
}

void SavedBytes::drop(int64_t number) {
  by_storage_.erase(at(number).storage());
  by_number_.erase(number);
}

}  // namespace tt::autograd
