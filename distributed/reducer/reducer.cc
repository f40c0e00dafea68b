#include "distributed/reducer/reducer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "distributed/group/device_copy.h"
#include "distributed/group/scale.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/schema/error.h"
#include "engine/schema/read_only.h"

namespace tt::distributed {

Reducer::Reducer(std::shared_ptr<ProcessGroup> group, std::vector<Tensor> parameters, const Options& options)
    : group_(std::move(group)), parameters_(std::move(parameters)), options_(options), gradients_(parameters_.size()) {
  for (const Tensor& p : parameters_) {
    check(ErrorKind::kType, has_gradients(p.dtype()) && !is_float8(p.dtype()),
          "expected parameters of a floating or complex dtype, got ", p.dtype());
    const bool compresses = options.wire_dtype && is_floating(p.dtype());
    check(ErrorKind::kType, !options.wire_dtype || compresses, "gradients of ", p.dtype(), " cannot be sent as ",
          options.wire_dtype ? *options.wire_dtype : p.dtype());
  }
  make_buckets(options);
}

void Reducer::make_buckets(const Options& options) {
  place_.resize(parameters_.size());
  std::vector<size_t> open(kNumDTypes, SIZE_MAX);  // the bucket that is being filled, per dtype
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Tensor& parameter = parameters_[i];
    const DType dtype = options.wire_dtype.value_or(parameter.dtype());
    size_t& current = open[static_cast<size_t>(dtype)];
    const size_t limit = current == 0 ? options.first_bucket_bytes : options.bucket_bytes;
    if (current == SIZE_MAX || static_cast<size_t>(buckets_[current].items) * item_size(dtype) >= limit) {
      current = buckets_.size();
      buckets_.push_back({dtype, {}, {}});
    }
    Bucket& bucket = buckets_[current];
    place_[i] = {current, bucket.parameters.size()};
    bucket.parameters.push_back(i);
    bucket.offsets.push_back(bucket.items);
    bucket.items += parameter.numel();
  }
}

void Reducer::prepare(bool synchronize) {
  check(!finishing_ && complete_ == next_, "the previous backward pass has not ended");
  synchronizes_ = synchronize;
  std::fill(gradients_.begin(), gradients_.end(), Tensor());
  num_used_ = empty({static_cast<int64_t>(parameters_.size())}, DType::kInt32, Device{});
  std::fill_n(num_used_.data_as<int32_t>(), parameters_.size(), 0);
  used_work_ = nullptr;
  next_ = complete_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.num_ready = 0;
    bucket.work = nullptr;
  }
}

bool Reducer::is_idle() const {
  return !finishing_ && complete_ == next_ &&
         std::none_of(gradients_.begin(), gradients_.end(), [](const Tensor& gradient) { return !!gradient; });
}

void Reducer::write_image(ImageTensors* tensors, ImageOutput* out) const {
  out->number(options_.first_bucket_bytes);
  out->number(options_.bucket_bytes);
  out->number(options_.wire_dtype ? static_cast<uint64_t>(*options_.wire_dtype) + 1 : 0);
  out->flag(synchronizes_);
  out->number(parameters_.size());
  for (const Tensor& parameter : parameters_) out->number(tensors->number(parameter));
}

std::shared_ptr<Reducer> Reducer::read_image(std::shared_ptr<ProcessGroup> group, ImageInput* in,
                                             const ImageObjects& objects) {
  Options options;
  options.first_bucket_bytes = static_cast<size_t>(in->number());
  options.bucket_bytes = static_cast<size_t>(in->number());
  if (const uint64_t dtype = in->number(kNumDTypes); dtype != 0) options.wire_dtype = static_cast<DType>(dtype - 1);
  const bool synchronizes = in->flag();
  std::vector<Tensor> parameters;
  for (size_t count = in->count(); count > 0; --count) parameters.push_back(objects.defined_tensor(in));
  auto reducer = std::make_shared<Reducer>(std::move(group), std::move(parameters), options);
  if (synchronizes) reducer->prepare(true);
  return reducer;
}

void Reducer::allocate(Bucket& bucket) {
  if (bucket.flat) return;
  const Device first = parameters_[bucket.parameters[0]].device();
  const bool is_one_device = std::all_of(bucket.parameters.begin(), bucket.parameters.end(),
                                         [&](size_t i) { return parameters_[i].device() == first; });
  bucket.flat = empty({bucket.items}, bucket.dtype, is_one_device ? first : Device{});
}

Tensor Reducer::piece(const Bucket& bucket, size_t position) const {
  const Tensor& parameter = parameters_[bucket.parameters[position]];
  Geometry geometry;
  geometry.sizes = parameter.sizes();
  geometry.strides = contiguous_strides(parameter.sizes());
  geometry.offset = bucket.offsets[position];
  return view_of(bucket.flat, geometry);
}

void Reducer::accumulated(size_t index, const Tensor& gradient) {
  if (!synchronizes_ || finishing_) return;
  check(!gradients_[index], "the gradient of parameter ", index,
        " was computed twice between two forward passes; the first result may already be reduced");
  gradients_[index] = gradient;
  num_used_.data_as<int32_t>()[index] = 1;
  const auto [b, position] = place_[index];
  Bucket& bucket = buckets_[b];
  allocate(bucket);
  copy_into(piece(bucket, position), on_device(gradient, bucket.flat.device()));
  ++bucket.num_ready;
  start_ready_buckets();
}

void Reducer::start_ready_buckets() {
  for (; next_ < buckets_.size() && buckets_[next_].num_ready == buckets_[next_].parameters.size(); ++next_) {
    start(buckets_[next_]);
  }
}

void Reducer::start(Bucket& bucket) {
  const Device device = bucket.flat.device();
  const bool is_on_gpu = device.type != DeviceType::kCPU;
  ProcessGroup::Request request;
  request.collective.kind = CollectiveKind::kAllReduce;
  request.collective.dtype = bucket.dtype;
  request.collective.count = static_cast<size_t>(bucket.items);
  // The sum of 16-bit gradients could overflow although their average does not.
  const bool divides_first = item_size(bucket.dtype) == 2;
  if (!divides_first) request.divisor = group_->size();
  if (is_on_gpu) {
    Tensors gradients;
    for (size_t i : bucket.parameters) {
      if (gradients_[i]) gradients.push_back(gradients_[i]);
    }
    check_values(gradients, device);
    if (divides_first) bucket.flat = ops::div(bucket.flat, static_cast<double>(group_->size()));
    request.device = device;
    request.ready = Context::current().stream(device).record();
  } else if (divides_first) {
    divide(bucket.dtype, static_cast<char*>(bucket.flat.data()), request.collective.count, group_->size());
  }
  request.collective.input = request.collective.output = static_cast<char*>(bucket.flat.data());
  request.site = "gradients of DistributedDataParallel";
  request.tensors = {bucket.flat};
  bucket.work = group_->start(std::move(request));
}

// Completes the buckets with the gradients that the pass did not compute, and reduces the number of ranks that did.
void Reducer::start_unused(const Tensors& gradients) {
  for (Bucket& bucket : buckets_) {
    if (bucket.num_ready == bucket.parameters.size()) continue;
    allocate(bucket);
    for (size_t position = 0; position < bucket.parameters.size(); ++position) {
      const size_t index = bucket.parameters[position];
      if (!gradients_[index]) copy_into(piece(bucket, position), on_device(gradients[index], bucket.flat.device()));
    }
    bucket.num_ready = bucket.parameters.size();
  }
  start_ready_buckets();
  ProcessGroup::Request request;
  request.collective.kind = CollectiveKind::kAllReduce;
  request.collective.dtype = DType::kInt32;
  request.collective.count = parameters_.size();
  request.collective.input = request.collective.output = static_cast<char*>(num_used_.data());
  request.site = "parameters used by DistributedDataParallel";
  request.tensors = {num_used_};
  used_work_ = group_->start(std::move(request));
}

// Throws Error, also on the other ranks, if a gradient is missing.
void Reducer::check_complete(const Tensors& gradients) const {
  std::vector<size_t> missing;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (!gradients_[i]) missing.push_back(i);
  }
  if (missing.empty() || gradients.size() == parameters_.size()) return;
  group_->abort(
      absl::StrCat("rank ", group_->rank(), " computed no gradient for parameters ", absl::StrJoin(missing, " ")));
  fail(ErrorKind::kRuntime, "expected a gradient of every parameter, got none for parameters ",
       absl::StrJoin(missing, " "),
       "; pass find_unused_parameters=True to DistributedDataParallel if the loss does not depend on all of them");
}

void Reducer::skip(const Error& error, const std::string& site, bool allows_unused) {
  if (!synchronizes_ || finishing_) return;
  const size_t missing = buckets_.size() - next_ + (allows_unused ? 1 : 0);
  for (size_t i = 0; i < missing; ++i) {
    ProcessGroup::Request request;
    request.collective.kind = CollectiveKind::kAllReduce;
    request.site = site;
    request.failure = error.message();
    group_->start(std::move(request));
  }
  abandon_pass();
}

void Reducer::abandon_pass() {
  finishing_ = synchronizes_ = false;
  complete_ = next_;
  std::fill(gradients_.begin(), gradients_.end(), Tensor());
  for (Bucket& bucket : buckets_) bucket.flat = Tensor();
}

std::shared_ptr<Work> Reducer::finish(const Tensors& gradients) {
  if (!synchronizes_) return nullptr;
  if (!finishing_) {
    const bool is_of_another_module =
        std::none_of(gradients_.begin(), gradients_.end(), [](const Tensor& g) { return !!g; });
    if (is_of_another_module) return nullptr;
    check_complete(gradients);
    finishing_ = true;
    if (!gradients.empty()) start_unused(gradients);
  }
  try {
    for (; complete_ < buckets_.size(); ++complete_) {
      const Bucket& bucket = buckets_[complete_];
      if (!bucket.work->ready()) return bucket.work;
      if (bucket.work->error()) throw Error(*bucket.work->error());
      copy_to_gradients(bucket, gradients);
    }
    if (used_work_) {
      if (!used_work_->ready()) return used_work_;
      if (used_work_->error()) throw Error(*used_work_->error());
    }
  } catch (const Error&) {
    abandon_pass();
    throw;
  }
  finishing_ = synchronizes_ = false;
  std::fill(gradients_.begin(), gradients_.end(), Tensor());
  return nullptr;
}

void Reducer::copy_to_gradients(const Bucket& bucket, const Tensors& gradients) const {
  for (size_t position = 0; position < bucket.parameters.size(); ++position) {
    const size_t index = bucket.parameters[position];
    const Tensor& gradient = gradients_[index] ? gradients_[index] : gradients[index];
    check(!gradient->storage->is_read_only(), "[reducer] ", kReadOnly);
    copy_into(gradient, on_device(piece(bucket, position), gradient.device()));
    gradient->storage->bump_version();
  }
}

}  // namespace tt::distributed
