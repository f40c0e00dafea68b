#include "server/serving/served_model.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file_descriptor.h"
#include "engine/device/cancellation.h"
#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/ops.h"
#include "engine/program/poison.h"
#include "formats/safetensors.h"

namespace tt::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxAccepted = 256;

FileDescriptor open_regular(const std::filesystem::path& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  check(ErrorKind::kFileNotFound, static_cast<bool>(file), "[model] cannot open ", path.filename().native(), ": ",
        std::strerror(errno));
  struct stat status {};
  check(ErrorKind::kValue, fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode),
        "[model] expected a file: ", path.filename().native());
  return file;
}

// Calls a function that reads a file. Messages of its errors name the file.
template <typename Read>
decltype(auto) in_file(absl::string_view name, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    constexpr absl::string_view kPrefix = "[model] ";
    absl::string_view message = error.message();
    absl::ConsumePrefix(&message, kPrefix);
    if (absl::StrContains(message, name)) throw;
    throw Error(error.kind(), absl::StrCat(kPrefix, name, ": ", message));
  }
}

Tensor on_device(const Tensor& tensor, Device device) {
  return tensor.device() == device ? tensor : ops::to_device(tensor, device);
}

// Identifies an entry and the sizes of its inputs. Inputs of one signature meet the entry's requirements, or none do.
std::string signature_of(const ModelEntry& entry, absl::Span<const Tensor> inputs) {
  std::string signature = entry.name;
  for (const Tensor& input : inputs) {
    for (const int64_t size : input.sizes()) absl::StrAppend(&signature, "/", size);
    absl::StrAppend(&signature, ";");
  }
  return signature;
}

// Runs of one key have inputs of sizes that differ by less than a factor of two, and times about in proportion to
// `work`.
struct SizeClass {
  uint64_t key;
  double work;
};

SizeClass size_class(const ModelEntry& entry, absl::Span<const Tensor> inputs) {
  SizeClass found{absl::HashOf(&entry), 0};
  for (const Tensor& input : inputs) {
    for (const int64_t size : input.sizes()) {
      found.key = absl::HashOf(found.key, std::bit_width(static_cast<uint64_t>(size)));
    }
    found.work += static_cast<double>(input.numel());
  }
  return found;
}

}  // namespace

std::string read_model_file(const std::filesystem::path& path, uint64_t max_bytes) {
  const FileDescriptor file = open_regular(path);
  const std::string name = path.filename().native();
  const uint64_t size = file_size(file.get(), name);
  check(ErrorKind::kValue, size <= max_bytes, "[model] expected ", name, " to have at most ", max_bytes, " bytes, got ",
        size);
  std::string bytes(size, '\0');
  read_exactly(file.get(), bytes.data(), size, 0, name);
  return bytes;
}

ServedModel::ServedModel(ModelFile file, Options options)
    : file_(std::move(file)),
      options_(std::move(options)),
      account_(std::make_shared<Account>(absl::StrCat("model ", options_.name), options_.memory_limit,
                                         Account::DescribeSite(), Account::new_tenant(), options_.quota)) {}

std::shared_ptr<const ServedModel> ServedModel::load(const std::filesystem::path& folder, Options options) {
  check(ErrorKind::kValue, Devices::instance().has(options.device), "[model] expected a device of this engine, got ",
        options.device);
  ModelFile file = in_file(kDescription, [&] {
    return parse_model(read_model_file(folder / kDescription, ModelFile::kMaxBytes), options.device);
  });
  const std::shared_ptr<ServedModel> model(new ServedModel(std::move(file), std::move(options)));
  model->load_weights(folder / kWeights);
  return model;
}

void ServedModel::load_weights(const std::filesystem::path& path) {
  Context context;
  context.account = account_;
  {
    const ContextScope scope(&context);
    const bool any = std::any_of(file_.entries.begin(), file_.entries.end(),
                                 [](const ModelEntry& entry) { return !entry.weights.empty(); });
    const FileDescriptor file = any ? open_regular(path) : FileDescriptor();
    std::map<std::string, Tensor> loaded;
    std::optional<SafetensorsFile> stored;
    std::optional<SafetensorsHeader> header;
    if (any) {
      stored = read_safetensors_header(file.get(), kWeights);
      header = in_file(kWeights, [&] { return SafetensorsHeader::parse(stored->text, stored->data_bytes); });
    }
    for (const ModelEntry& entry : file_.entries) {
      std::vector<Tensor>& weights = weights_[entry.name];
      for (const std::string& name : entry.weights) {
        Tensor& weight = loaded[name];
        if (!weight) {
          check_cancelled();
          const StoredTensor& each = in_file(kWeights, [&]() -> const StoredTensor& { return header->find(name); });
          const Tensor host = empty(each.sizes, each.dtype, Device());
          if (each.bytes != 0) {
            read_exactly(file.get(), host.data(), each.bytes, stored->data_offset + each.begin, kWeights);
          }
          weight = on_device(host, options_.device);
          weight_bytes_ += each.bytes;
        }
        weights.push_back(weight);
      }
    }
    context.finish_device_work();
    for (auto& [name, weight] : loaded) weight->storage->freeze();
  }
  context.close();
}

Tensor zeros_on_host(SizesView sizes, DType dtype) {
  Tensor zeros = empty(sizes, dtype, Device());
  if (const size_t bytes = static_cast<size_t>(zeros.numel()) * item_size(dtype); bytes != 0) {
    std::memset(zeros.data(), 0, bytes);
  }
  return zeros;
}

ModelInstance::ModelInstance(std::shared_ptr<const ServedModel> model)
    : model_(std::move(model)), tuner_(model_->options().device.type == DeviceType::kCPU ? num_threads() : 1) {
  context_.account = model_->account();
  context_.grad_enabled = false;
  context_.share_gpus(model_->options().queues.get(), model_->options().share.get(), &flow_);
}

ModelInstance::~ModelInstance() {
  weights_.clear();
  context_.close();
}

ModelInstance::Use::Use(ModelInstance& instance, Share* share, Flow* flow)
    : instance_(instance),
      context_(&instance.context_),
      turn_(instance.model_->processors(), share != nullptr ? share : instance.model_->options().share.get(),
            share != nullptr ? flow : &instance.flow_, share != nullptr) {}

ModelInstance::Use::~Use() { instance_.context_.rest_turns(); }

const std::vector<Tensor>& ModelInstance::weights_of(const ModelEntry& entry) {
  const auto [found, is_new] = weights_.try_emplace(entry.name);
  if (is_new) {
    for (const Tensor& weight : model_->weights_of(entry)) found->second.push_back(detach(weight));
  }
  return found->second;
}

std::vector<Tensor> ModelInstance::run(const ModelEntry& entry, absl::Span<const Tensor> inputs,
                                       std::vector<Tensor>* states) {
  const size_t in_place = entry.states_in_place(), returned = entry.states.size() - in_place;
  check((states == nullptr ? 0 : states->size()) == entry.states.size(), "[model] expected ", entry.states.size(),
        " states, got ", states == nullptr ? 0 : states->size());
  std::vector<Tensor> read;
  for (const Tensor& input : inputs) read.push_back(on_device(input, model_->options().device));
  const std::vector<Tensor>& weights = weights_of(entry);
  read.insert(read.end(), weights.begin(), weights.end());
  for (size_t i = 0; i < returned; ++i) read.push_back((*states)[i]);
  const absl::Span<const Tensor> written =
      states == nullptr ? absl::Span<const Tensor>() : absl::MakeConstSpan(*states).subspan(returned);
  if (!entry.requirements.empty()) {
    std::string signature = signature_of(entry, read);
    if (std::find(accepted_.begin(), accepted_.end(), signature) == accepted_.end()) {
      std::vector<const TensorMeta*> metas;
      metas.reserve(read.size() + written.size());
      for (const Tensor& tensor : read) metas.push_back(tensor.get());
      for (const Tensor& tensor : written) metas.push_back(tensor.get());
      entry.check_requirements(metas);
      if (accepted_.size() == kMaxAccepted) accepted_.clear();
      accepted_.push_back(std::move(signature));
    }
  }
  const SizeClass size = size_class(entry, inputs);
  const bool one = tuner_.uses_one(size.key);
  Tensors results;
  const Clock::time_point begin = Clock::now();
  {
    const int limit = set_thread_limit(one ? 1 : 0);
    const absl::Cleanup restore = [&] { set_thread_limit(limit); };
    results = entry.program->run({read, written});
  }
  tuner_.add(size.key, one, Clock::now() - begin, size.work);
  for (size_t i = 0; i < returned; ++i) (*states)[i] = results[entry.outputs.size() + i];
  return {results.begin(), results.begin() + static_cast<std::ptrdiff_t>(entry.outputs.size())};
}

std::vector<Tensor> ModelInstance::make_states(const ModelEntry& entry) {
  std::vector<Tensor> states;
  states.reserve(entry.states.size());
  for (const ModelState& state : entry.states) {
    states.push_back(on_device(zeros_on_host(state.sizes, state.dtype), model_->options().device));
  }
  return states;
}

std::vector<Tensor> ModelInstance::to_host(std::vector<Tensor> values, bool copies) {
  std::vector<Tensor> host;
  bool waits = false;
  for (const Tensor& value : values) {
    const bool on_cpu = value.device().type == DeviceType::kCPU;
    waits = waits || !on_cpu;
    if (on_cpu && value.is_contiguous() && !copies) {
      host.push_back(value);
      continue;
    }
    host.push_back(empty(value.sizes(), value.dtype(), Device()));
    copy_into(host.back(), on_device(value, Device()));
  }
  if (waits) context_.finish_device_work();
  if (context_.has_async_errors()) {
    for (const Tensor& value : values) {
      if (value->storage->pending_errors.empty()) continue;
      if (const auto poison = context_.async_errors().find_error(value->storage->pending_errors)) {
        const Error error(poison->kind, poison->message);
        context_.async_errors().retire_completed(no_slots_);
        throw Error(error);
      }
    }
    context_.async_errors().retire_completed(no_slots_);
  }
  return host;
}

}  // namespace tt::server
