#include "server/serving/model_version.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/pool_threads.h"
#include "server/serving/datatype.h"
#include "server/serving/request_inputs.h"

namespace tt::server {
namespace {

// What the configuration says of inputs or outputs has to be what the model's description says. Adds those that it
// calls TYPE_STRING to `strings`.
template <typename Ports>
void check_ports(const std::vector<ModelPort>& ports, const Ports& configured, bool is_batched, const char* what,
                 std::set<const ModelPort*>* strings) {
  for (const auto& wire : configured) {
    const auto port =
        std::find_if(ports.begin(), ports.end(), [&](const ModelPort& each) { return each.name == wire.name(); });
    check(ErrorKind::kValue, port != ports.end(), "[model] the configuration names the ", what, " '",
          wire.name().substr(0, ModelFile::kMaxName), "', which the model does not have");
    const size_t first = is_batched ? 1 : 0;
    const bool is_string = wire.data_type() == inference::TYPE_STRING;
    if (is_string) strings->insert(&*port);
    check(ErrorKind::kValue, !is_string || (port->dtype == DType::kUInt8 && port->dims.size() > first),
          "[model] TYPE_STRING requires a ", what, " of UINT8 whose last dimension is the strings' bytes, got '",
          port->name, "' of ", datatype_name(port->dtype), " ", sizes_text(*port));
    const bool same_type =
        is_string || wire.data_type() == inference::TYPE_INVALID || wire.data_type() == config_type(port->dtype);
    const size_t dims = port->dims.size() - (is_string ? 1 : 0);
    bool fits = wire.dims_size() == 0 || static_cast<size_t>(wire.dims_size()) + first == dims;
    for (int i = 0; fits && i < wire.dims_size(); ++i) {
      fits = wire.dims(i) == port->dims[static_cast<size_t>(i) + first].size;
    }
    check(ErrorKind::kValue, same_type && fits, "[model] the configuration of the ", what, " '", wire.name(),
          "' has another data type or other sizes than the model's description: ", datatype_name(port->dtype), " ",
          sizes_text(*port));
  }
}

}  // namespace

ModelVersion::ModelVersion(std::string name, int64_t number, ModelSettings settings,
                           std::vector<std::shared_ptr<const ServedModel>> models)
    : name_(std::move(name)),
      number_(number),
      settings_(std::move(settings)),
      models_(std::move(models)),
      entry_(models_[0]->file().find("")) {
  for (size_t i = 0; i < models_.size(); ++i) {
    for (size_t k = 0; k < settings_.groups[i].count; ++k) {
      instances_.push_back(std::make_unique<ModelInstance>(models_[i]));
    }
  }
  batcher_ = std::make_unique<Batcher>(
      settings_.batching, [this](size_t instance, absl::Span<Batcher::Job* const> batch) { execute(instance, batch); });
}

ModelVersion::~ModelVersion() {
  MutexLock lock(sequences_mutex_);
  sequences_.clear();
}

std::shared_ptr<ModelVersion> ModelVersion::load(const std::filesystem::path& folder,
                                                 const std::filesystem::path& model_folder, std::string name,
                                                 int64_t number, ModelSettings settings, const Resources& resources) {
  std::vector<std::shared_ptr<const ServedModel>> models;
  const std::string label = absl::StrCat(name, "/", number);
  SequencePorts sequence_ports;
  for (const ModelSettings::Group& group : settings.groups) {
    const Device device = group.device.value_or(Device());
    const auto same = std::find_if(models.begin(), models.end(),
                                   [&](const auto& model) { return model->options().device == device; });
    models.push_back(same != models.end() ? *same
                                          : ServedModel::load(folder, {.name = label,
                                                                       .device = device,
                                                                       .memory_limit = settings.memory_limit,
                                                                       .quota = resources.quota,
                                                                       .queues = resources.queues,
                                                                       .share = resources.share}));
  }
  std::set<const ModelPort*> strings;
  if (const ModelEntry* entry = models[0]->file().find("")) {
    for (const std::vector<ModelPort>* ports : {&entry->inputs, &entry->outputs}) {
      for (const ModelPort& port : *ports) {
        check(ErrorKind::kValue, !datatype_name(port.dtype).empty(), "[model] the protocol has no datatype for '",
              port.name, "' of the dtype ", port.dtype);
      }
    }
    check(ErrorKind::kValue, settings.max_batch == 0 || entry->is_batchable(), "[model] max_batch_size requires that ",
          "the first dimensions of all inputs and outputs are dynamic and have the same name");
    for (const ModelPort& port : settings.max_batch == 0 ? std::vector<ModelPort>() : entry->inputs) {
      const int64_t most = port.dims[0].max;
      check(ErrorKind::kValue, static_cast<uint64_t>(most) >= settings.max_batch, "[model] expected a max_batch_size ",
            "of at most ", most, ", the rows that the input '", port.name, "' may have, got ", settings.max_batch);
    }
    if (!entry->states.empty()) {
      check(ErrorKind::kValue, !settings.config.has_dynamic_batching(),
            "[model] expected no dynamic_batching of a model ", "with states: its requests are those of sequences");
      settings.has_sequences = true;
      settings.config.mutable_sequence_batching();
    }
    const bool same_device =
        std::all_of(models.begin(), models.end(), [&](const auto& model) { return model == models[0]; });
    sequence_ports = tt::server::sequence_ports(*entry, settings.config);
    check(ErrorKind::kValue, (entry->states.empty() && sequence_ports.states.empty()) || same_device,
          "[model] expected instances of a model with states on one device, because every instance runs any sequence");
    check_ports(entry->inputs, settings.config.input(), settings.max_batch != 0, "input", &strings);
    check_ports(entry->outputs, settings.config.output(), settings.max_batch != 0, "output", &strings);
  }
  const std::shared_ptr<ModelVersion> version(
      new ModelVersion(std::move(name), number, std::move(settings), std::move(models)));
  version->strings_ = std::move(strings);
  version->sequence_ports_ = std::move(sequence_ports);
  version->read_labels_of_outputs(model_folder);
  if (resources.make_streaming) {
    version->streaming_ = resources.make_streaming(version->models_[0], version->settings_);
  }
  check(ErrorKind::kValue, version->entry_ != nullptr || version->streaming_, "[model] expected an entry without a ",
        "name, or attributes of a model that generates");
  check(ErrorKind::kValue, version->streaming_ || !version->settings_.config.model_transaction_policy().decoupled(),
        "[model] expected a model that generates, because the configuration says that it is decoupled");
  version->watch_ = resources.watch;
  version->warm_up(resources.warm_up_share);
  release_pool_threads();
  return version;
}

void ModelVersion::read_labels_of_outputs(const std::filesystem::path& folder) {
  for (const inference::ModelOutput& output : settings_.config.output()) {
    if (output.label_filename().empty() || entry_ == nullptr) continue;
    const auto port = std::find_if(entry_->outputs.begin(), entry_->outputs.end(),
                                   [&](const ModelPort& each) { return each.name == output.name(); });
    labels_[static_cast<size_t>(port - entry_->outputs.begin())] = read_labels(folder, output.label_filename());
  }
}

const ClassLabels& ModelVersion::labels_of(size_t output) const {
  static const ClassLabels kNone;
  const auto found = labels_.find(output);
  return found == labels_.end() ? kNone : found->second;
}

std::vector<const ModelPort*> ModelVersion::request_inputs() const {
  std::vector<const ModelPort*> ports;
  for (size_t i = 0; entry_ != nullptr && i < entry_->inputs.size(); ++i) {
    if (sequence_ports_.has_input(i)) ports.push_back(&entry_->inputs[i]);
  }
  return ports;
}

std::vector<const ModelPort*> ModelVersion::response_outputs() const {
  std::vector<const ModelPort*> ports;
  for (size_t i = 0; entry_ != nullptr && i < entry_->outputs.size(); ++i) {
    if (sequence_ports_.has_output(i)) ports.push_back(&entry_->outputs[i]);
  }
  return ports;
}

uint64_t ModelVersion::held_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < models_.size(); ++i) {
    if (std::find(models_.begin(), models_.begin() + static_cast<std::ptrdiff_t>(i), models_[i]) ==
        models_.begin() + static_cast<std::ptrdiff_t>(i)) {
      bytes += models_[i]->account()->held();
    }
  }
  return bytes;
}

bool ModelVersion::allows(const std::string& principal) const {
  return settings_.principals.empty() ||
         std::find(settings_.principals.begin(), settings_.principals.end(), principal) != settings_.principals.end();
}

inference::ModelConfig ModelVersion::config() const {
  inference::ModelConfig config = settings_.config;
  config.set_name(name_);
  config.set_platform(file().platform);
  config.set_backend("teletensor");
  if (has_streams()) config.mutable_model_transaction_policy()->set_decoupled(true);
  if (entry_ == nullptr) return config;
  const auto describe = [&](const ModelPort& port, auto* wire) {
    wire->set_name(port.name);
    wire->set_data_type(is_string(port) ? inference::TYPE_STRING : config_type(port.dtype));
    const size_t dims = port.dims.size() - (is_string(port) ? 1 : 0);
    for (size_t i = settings_.max_batch != 0 ? 1 : 0; i < dims; ++i) wire->add_dims(port.dims[i].size);
  };
  config.clear_input();
  config.clear_output();
  for (const ModelPort* port : request_inputs()) describe(*port, config.add_input());
  for (const ModelPort* port : response_outputs()) {
    describe(*port, config.add_output());
    for (const inference::ModelOutput& own : settings_.config.output()) {
      if (own.name() == port->name) config.mutable_output()->rbegin()->set_label_filename(own.label_filename());
    }
  }
  return config;
}

}  // namespace tt::server
