#include "server/serving/model_version.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/log.h"
#include "server/serving/byte_strings.h"
#include "server/serving/datatype.h"

namespace tt::server {
namespace {

using Clock = std::chrono::steady_clock;

// Of a tensor in a request; products of sizes then fit into 63 bits with any dtype.
constexpr int64_t kMaxElements = int64_t{1} << 48;

std::string text_of(const ModelPort& port) {
  std::vector<std::string> dims;
  dims.reserve(port.dims.size());
  for (const ModelPort::Dim& dim : port.dims) dims.push_back(absl::StrCat(dim.size));
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

template <typename... Parts>
absl::Status invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("[ModelInfer] ", parts...));
}

// The sizes of dynamic dimensions by name.
using NamedSizes = absl::flat_hash_map<std::string, int64_t>;

absl::Status check_input(const ModelPort& port, const InferInput& input, NamedSizes* named) {
  if (input.dtype != port.dtype) {
    return invalid("expected the datatype ", datatype_name(port.dtype), " for input '", port.name, "', got ",
                   datatype_name(input.dtype));
  }
  const std::string got = to_string(SizesView(input.sizes));
  if (input.sizes.size() != port.dims.size()) {
    return invalid("expected the shape ", text_of(port), " for input '", port.name, "', got ", got);
  }
  int64_t elements = 1;
  for (size_t i = 0; i < port.dims.size(); ++i) {
    const ModelPort::Dim& dim = port.dims[i];
    const int64_t size = input.sizes[i];
    if (size < 0 || (dim.size != kDynamic && size != dim.size)) {
      return invalid("expected the shape ", text_of(port), " for input '", port.name, "', got ", got);
    }
    if (size < dim.min || size > dim.max) {
      return invalid("expected a size of ", dim.min, " to ", dim.max, " in dimension ", i, " of input '", port.name,
                     "', got ", size);
    }
    if (dim.size == kDynamic && !dim.name.empty()) {
      const auto [known, is_new] = named->try_emplace(dim.name, size);
      if (!is_new && known->second != size) {
        return invalid("expected the size ", known->second, " ('", dim.name, "') in dimension ", i, " of input '",
                       port.name, "', as in another input, got ", size);
      }
    }
    if (size > kMaxElements || elements > kMaxElements / std::max<int64_t>(size, 1)) {
      return invalid("expected at most ", kMaxElements, " elements of input '", port.name, "', got ", got);
    }
    elements *= std::max<int64_t>(size, 1);
  }
  if (std::find(input.sizes.begin(), input.sizes.end(), 0) != input.sizes.end()) elements = 0;
  const uint64_t bytes = static_cast<uint64_t>(elements) * item_size(input.dtype);
  if (!input.is_strings && bytes != input.bytes.size()) {
    return invalid("expected ", bytes, " bytes for input '", port.name, "' of the shape ", got, ", got ",
                   input.bytes.size());
  }
  return absl::OkStatus();
}

// Bytes of a request's strings as rows, unless the client has sent a quarter of them: every row is as wide as the
// longest one, so that a few bytes could otherwise take any amount of memory and time.
constexpr uint64_t kMaxStringRows = uint64_t{16} << 20;

// The input of a port that is BYTES for clients as the model sees it: with the strings' width as its last size.
absl::StatusOr<InferInput> with_width(const ModelPort& port, const InferInput& input) {
  if (!input.is_strings) {
    return invalid("expected the datatype ", kBytesDatatype, " for input '", port.name, "', got ",
                   datatype_name(input.dtype));
  }
  uint64_t count = 1;
  for (const int64_t size : input.sizes) {
    const uint64_t most = input.bytes.size();  // each string has some
    if (size < 0 || (size != 0 && static_cast<uint64_t>(size) > most / std::max<uint64_t>(count, 1))) {
      return invalid("expected a string per element of input '", port.name, "' of the shape ",
                     to_string(SizesView(input.sizes)), ", got ", input.bytes.size(), " bytes");
    }
    count *= static_cast<uint64_t>(size);
  }
  const absl::StatusOr<uint64_t> longest = longest_string(input.bytes, count);
  if (!longest.ok()) return longest.status();
  const ModelPort::Dim& last = port.dims.back();
  const auto needed = static_cast<int64_t>(*longest);
  const int64_t most = last.size != kDynamic ? last.size : last.max;
  if (needed > most) {
    return invalid("expected strings of at most ", most, " bytes for input '", port.name, "', got ", needed);
  }
  const int64_t width = last.size != kDynamic ? last.size : std::max({needed, last.min, int64_t{1}});
  const uint64_t room = std::max<uint64_t>(kMaxStringRows, 4 * input.bytes.size());
  if (count > room / std::max<uint64_t>(static_cast<uint64_t>(width), 1)) {
    return invalid("expected at most ", room, " bytes of strings for input '", port.name, "', each as long as the ",
                   "longest one, got ", count, " of ", width, " bytes; send fewer, or those of similar lengths");
  }
  InferInput widened = input;
  widened.sizes.push_back(width);
  return widened;
}

Sizes zero_sizes(const ModelPort& port, int64_t rows) {
  Sizes sizes;
  for (size_t i = 0; i < port.dims.size(); ++i) {
    const ModelPort::Dim& dim = port.dims[i];
    sizes.push_back(dim.size != kDynamic ? dim.size : i == 0 ? rows : std::max<int64_t>(dim.min, 1));
  }
  return sizes;
}

// Whether the model can be run without knowing what its dynamic sizes mean: only a batch's rows are dynamic.
bool has_static_rows(const ModelEntry& entry, bool is_batched) {
  return std::all_of(entry.inputs.begin(), entry.inputs.end(), [&](const ModelPort& port) {
    return std::all_of(port.dims.begin() + (is_batched ? 1 : 0), port.dims.end(),
                       [](const ModelPort::Dim& dim) { return dim.size != kDynamic; });
  });
}

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
          port->name, "' of ", datatype_name(port->dtype), " ", text_of(*port));
    const bool same_type =
        is_string || wire.data_type() == inference::TYPE_INVALID || wire.data_type() == config_type(port->dtype);
    const size_t dims = port->dims.size() - (is_string ? 1 : 0);
    bool fits = wire.dims_size() == 0 || static_cast<size_t>(wire.dims_size()) + first == dims;
    for (int i = 0; fits && i < wire.dims_size(); ++i) {
      fits = wire.dims(i) == port->dims[static_cast<size_t>(i) + first].size;
    }
    check(ErrorKind::kValue, same_type && fits, "[model] the configuration of the ", what, " '", wire.name(),
          "' has another data type or other sizes than the model's description: ", datatype_name(port->dtype), " ",
          text_of(*port));
  }
}

// Bool tensors have the bytes 0 and 1 only: kernels rely on it.
void copy_values(DType dtype, absl::Span<const char> bytes, char* into) {
  if (dtype == DType::kBool) {
    std::transform(bytes.begin(), bytes.end(), into, [](char c) { return static_cast<char>(c != 0); });
  } else if (!bytes.empty()) {
    std::memcpy(into, bytes.data(), bytes.size());
  }
}

size_t elements_of(SizesView sizes) {
  size_t elements = 1;
  for (const int64_t size : sizes) elements *= static_cast<size_t>(size);
  return elements;
}

size_t bytes_of(const Tensor& tensor) { return static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype()); }

std::chrono::nanoseconds since(Clock::time_point then, Clock::time_point now) { return now - then; }

}  // namespace

// A request in the queue.
struct ModelVersion::Work final : Batcher::Job {
  std::vector<const InferInput*> inputs;  // in the entry's order
  std::deque<InferInput> strings;         // of them, those that clients send as BYTES
  std::vector<size_t> outputs;            // indices of those that are wanted
  std::vector<Tensor>* states = nullptr;  // of its sequence
  bool begins = false;                    // the states are to be made
  std::vector<Tensor> values;             // of the batch, by output
  size_t first_row = 0;                   // in the batch
  size_t rows_run = 0;                    // of the batch, with those that only fill it; 0: the values are the request's
  BatchTimes times;                       // of the batch
};

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

std::shared_ptr<ModelVersion> ModelVersion::load(const std::filesystem::path& folder, std::string name, int64_t number,
                                                 ModelSettings settings, const Resources& resources) {
  std::vector<std::shared_ptr<const ServedModel>> models;
  const std::string label = absl::StrCat(name, "/", number);
  for (const ModelSettings::Group& group : settings.groups) {
    const Device device = group.device.value_or(Device());
    const auto same = std::find_if(models.begin(), models.end(),
                                   [&](const auto& model) { return model->options().device == device; });
    models.push_back(same != models.end() ? *same
                                          : ServedModel::load(folder, {.name = label,
                                                                       .device = device,
                                                                       .memory_limit = settings.memory_limit,
                                                                       .quota = resources.quota,
                                                                       .queue = resources.queue,
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
    check(ErrorKind::kValue, entry->states.empty() || settings.has_sequences,
          "[model] a model with states requires sequence_batching in its configuration");
    const bool same_device =
        std::all_of(models.begin(), models.end(), [&](const auto& model) { return model == models[0]; });
    check(ErrorKind::kValue, entry->states.empty() || same_device,
          "[model] expected instances of a model with states on one device, because every instance runs any sequence");
    check_ports(entry->inputs, settings.config.input(), settings.max_batch != 0, "input", &strings);
    check_ports(entry->outputs, settings.config.output(), settings.max_batch != 0, "output", &strings);
  }
  const std::shared_ptr<ModelVersion> version(
      new ModelVersion(std::move(name), number, std::move(settings), std::move(models)));
  version->strings_ = std::move(strings);
  if (resources.make_streaming) {
    version->streaming_ = resources.make_streaming(version->models_[0], version->settings_);
  }
  check(ErrorKind::kValue, version->entry_ != nullptr || version->streaming_, "[model] expected an entry without a ",
        "name, or attributes of a model that generates");
  check(ErrorKind::kValue, version->streaming_ || !version->settings_.config.model_transaction_policy().decoupled(),
        "[model] expected a model that generates, because the configuration says that it is decoupled");
  version->warm_up();
  return version;
}

void ModelVersion::warm_up() {
  if (entry_ == nullptr || !settings_.warms_up) return;
  if (settings_.config.model_warmup_size() != 0) {
    for (const inference::ModelWarmup& each : settings_.config.model_warmup()) warm_up_with(each);
    return;
  }
  const bool is_batched = settings_.max_batch != 0;
  if (!has_static_rows(*entry_, is_batched)) return;
  run_zeros(1);
  if (!is_batched) return;
  for (const size_t rows : settings_.batching.preferred) run_zeros(static_cast<int64_t>(rows));
  if (settings_.padding != ModelSettings::Padding::kPowersOfTwo) return;
  for (size_t rows = 2; rows < 2 * settings_.max_batch; rows *= 2) {
    run_zeros(static_cast<int64_t>(std::min(rows, settings_.max_batch)));
  }
}

void ModelVersion::run_zeros(int64_t rows) {
  for (size_t i = 0; i < instances_.size(); ++i) {
    ModelInstance& instance = *instances_[i];
    const ModelInstance::Use use(instance);
    std::vector<Tensor> inputs;
    for (const ModelPort& port : entry_->inputs) {
      inputs.push_back(empty(zero_sizes(port, rows), port.dtype, Device()));
      const Tensor& input = inputs.back();
      if (input.numel() != 0) std::memset(input.data(), 0, static_cast<size_t>(input.numel()) * item_size(port.dtype));
    }
    std::vector<Tensor> states = instance.make_states(*entry_);
    instance.to_host(instance.run(*entry_, inputs, &states));
  }
}

void ModelVersion::warm_up_with(const inference::ModelWarmup& wire) {
  InferRequest request;
  uint64_t bytes_in_all = 0;
  const bool is_batched = settings_.max_batch != 0;
  for (const auto& [name, input] : wire.inputs()) {
    const auto port = std::find_if(entry_->inputs.begin(), entry_->inputs.end(),
                                   [&, &name = name](const ModelPort& p) { return p.name == name; });
    check(ErrorKind::kValue, port != entry_->inputs.end(), "[model] model_warmup names the input '", name,
          "', which the model does not have");
    Sizes sizes;
    if (is_batched) sizes.push_back(std::max<int64_t>(wire.batch_size(), 1));
    sizes.insert(sizes.end(), input.dims().begin(), input.dims().end());
    uint64_t elements = 1;
    constexpr uint64_t kMaxWarmupElements = uint64_t{1} << 28, kMaxWarmupBytes = uint64_t{1} << 29;
    for (const int64_t size : sizes) {
      check(ErrorKind::kValue,
            size >= 0 && static_cast<uint64_t>(size) <= kMaxWarmupElements &&
                elements * static_cast<uint64_t>(size) <= kMaxWarmupElements,
            "[model] expected sizes of model_warmup with at most ", kMaxWarmupElements, " elements, got ",
            SizesView(sizes));
      elements *= static_cast<uint64_t>(size);
    }
    const size_t item = is_string(*port) ? 4 : item_size(port->dtype);  // an empty string is its length
    bytes_in_all += elements * item;
    check(ErrorKind::kValue, bytes_in_all <= kMaxWarmupBytes, "[model] expected inputs of model_warmup of at most ",
          kMaxWarmupBytes, " bytes together");
    // Random bits are no sensible values of most dtypes; what warms up is the run.
    request.owned.emplace_back(elements * item, '\0');
    const std::string& bytes = request.owned.back();
    request.inputs.push_back({name, port->dtype, sizes, {bytes.data(), bytes.size()}, is_string(*port)});
  }
  request.sequence = settings_.has_sequences ? "warm-up" : "";
  request.sequence_start = request.sequence_end = settings_.has_sequences;
  for (uint32_t i = 0; i < std::clamp<uint32_t>(wire.count(), 1, 100); ++i) {
    const absl::StatusOr<InferResult> result = infer(request);
    check(ErrorKind::kValue, result.ok(), "[model] model_warmup '", wire.name(),
          "' has failed: ", std::string(result.status().message()));
  }
}

absl::Status ModelVersion::prepare(const InferRequest& request, Work* work) const {
  if (entry_ == nullptr) return absl::UnimplementedError("[ModelInfer] the model answers streams of tokens only");
  if (request.inputs.size() != entry_->inputs.size()) {
    return invalid("expected ", entry_->inputs.size(), " inputs, got ", request.inputs.size());
  }
  if (!request.parameters.empty()) {
    return invalid("expected no parameters but sequence_id, sequence_start, sequence_end, priority and timeout, got '",
                   request.parameters.begin()->first.substr(0, 100), "'");
  }
  if ((!request.sequence.empty() || request.sequence_start || request.sequence_end) && !settings_.has_sequences) {
    return invalid(
        "expected no sequence_id, sequence_start or sequence_end, because the model has no sequence_batching");
  }
  NamedSizes named;
  for (const ModelPort& port : entry_->inputs) {
    const InferInput* found = nullptr;
    for (const InferInput& input : request.inputs) {
      if (input.name != port.name) continue;
      if (found != nullptr) return invalid("expected distinct inputs, got '", port.name, "' twice");
      found = &input;
    }
    if (found == nullptr) return invalid("expected the input '", port.name, "', which is missing");
    if (is_string(port)) {
      absl::StatusOr<InferInput> widened = with_width(port, *found);
      if (!widened.ok()) return widened.status();
      work->strings.push_back(*std::move(widened));
      found = &work->strings.back();
    } else if (found->is_strings) {
      return invalid("expected the datatype ", datatype_name(port.dtype), " for input '", port.name, "', got ",
                     kBytesDatatype);
    }
    if (absl::Status status = check_input(port, *found, &named); !status.ok()) return status;
    work->inputs.push_back(found);
  }
  for (const std::string& name : request.outputs) {
    const auto found = std::find_if(entry_->outputs.begin(), entry_->outputs.end(),
                                    [&](const ModelPort& port) { return port.name == name; });
    if (found == entry_->outputs.end()) {
      return invalid("expected names of the model's outputs, got '", name.substr(0, ModelFile::kMaxName), "'");
    }
    work->outputs.push_back(static_cast<size_t>(found - entry_->outputs.begin()));
  }
  if (request.outputs.empty()) {
    for (size_t i = 0; i < entry_->outputs.size(); ++i) work->outputs.push_back(i);
  }
  if (request.outputs.size() > entry_->outputs.size()) return invalid("expected distinct outputs");
  if (settings_.max_batch != 0) {
    const int64_t rows = work->inputs[0]->sizes[0];
    if (rows < 1 || static_cast<uint64_t>(rows) > settings_.max_batch) {
      return invalid("expected a batch of 1 to ", settings_.max_batch, " rows, got ", rows);
    }
    for (const InferInput* input : work->inputs) {
      if (input->sizes[0] != rows) {
        return invalid("expected the same number of rows in all inputs, got ", rows, " and ", input->sizes[0]);
      }
      if (settings_.joins) absl::StrAppend(&work->key, ";", to_string(SizesView(input->sizes).subspan(1)));
    }
    work->rows = static_cast<size_t>(rows);
  }
  if (request.priority > settings_.batching.levels) {
    return invalid("expected a priority of at most ", settings_.batching.levels, ", got ", request.priority);
  }
  work->level = request.priority == 0 ? settings_.default_level : request.priority - 1;
  const Clock::time_point now = Clock::now();
  if (settings_.default_timeout.count() != 0) work->give_up = now + settings_.default_timeout;
  if (request.timeout_us != 0 && settings_.allow_timeout_override) {
    constexpr uint64_t kMaxTimeout = uint64_t{1} << 40;
    work->give_up = now + std::chrono::microseconds(std::min(request.timeout_us, kMaxTimeout));
  }
  work->deadline = request.deadline;
  work->is_cancelled = request.is_cancelled;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ModelVersion::Sequence>> ModelVersion::begin_sequence(const InferRequest& request) {
  constexpr std::chrono::milliseconds kPollInterval{50};
  const SequenceKey key{request.principal, request.sequence};
  std::vector<std::shared_ptr<Sequence>> dropped;  // destroyed outside of the lock
  MutexLock lock(sequences_mutex_);
  Clock::time_point now = Clock::now();
  for (auto each = sequences_.begin(); each != sequences_.end();) {
    const bool is_idle = !each->second->is_busy && now - each->second->used > settings_.max_sequence_idle;
    if (is_idle) dropped.push_back(std::move(each->second));
    each = is_idle ? sequences_.erase(each) : std::next(each);
  }
  if (request.sequence_start) {
    const auto first = sequences_.lower_bound({request.principal, ""});
    const auto last =
        std::find_if(first, sequences_.end(), [&](const auto& each) { return each.first.first != request.principal; });
    const bool is_new = !sequences_.contains(key);
    if (is_new && (sequences_.size() >= kMaxSequences ||
                   static_cast<size_t>(std::distance(first, last)) >= kMaxSequencesOfPrincipal)) {
      return absl::ResourceExhaustedError(absl::StrCat("[ModelInfer] expected at most ", kMaxSequencesOfPrincipal,
                                                       " sequences of one caller and ", kMaxSequences,
                                                       " of all; end some, or wait until they are idle"));
    }
    std::shared_ptr<Sequence>& sequence = sequences_[key];
    dropped.push_back(std::move(sequence));
    sequence = std::make_shared<Sequence>();
    sequence->used = now;
  }
  const auto missing = [&] {
    return invalid("expected a request with sequence_start for the sequence '", request.sequence.substr(0, 100),
                   "', which does not exist, has ended or was idle for too long");
  };
  const auto found = sequences_.find(key);
  if (found == sequences_.end()) return missing();
  const std::shared_ptr<Sequence> sequence = found->second;
  while (sequence->is_busy) {
    if (request.is_cancelled && request.is_cancelled()) {
      return absl::CancelledError("[ModelInfer] the request was cancelled while it waited for its sequence");
    }
    now = Clock::now();
    if (now >= request.deadline) {
      return absl::DeadlineExceededError("[ModelInfer] the request's time has passed while it waited for its sequence");
    }
    sequences_changed_.wait_until(sequences_mutex_, std::min(request.deadline, now + kPollInterval));
  }
  // It may have ended, or begun again, meanwhile.
  const auto current = sequences_.find(key);
  if (current == sequences_.end() || current->second != sequence) return missing();
  sequence->is_busy = true;
  return sequence;
}

void ModelVersion::end_sequence(const InferRequest& request, const std::shared_ptr<Sequence>& sequence) {
  MutexLock lock(sequences_mutex_);
  sequence->is_busy = false;
  sequence->used = Clock::now();
  sequences_changed_.notify_all();
  if (!request.sequence_end) return;
  const auto found = sequences_.find({request.principal, request.sequence});
  if (found != sequences_.end() && found->second == sequence) sequences_.erase(found);
}

size_t ModelVersion::sequences() const {
  MutexLock lock(sequences_mutex_);
  return sequences_.size();
}

absl::StatusOr<InferResult> ModelVersion::infer(const InferRequest& request) {
  const Clock::time_point begin = Clock::now();
  Work work;
  absl::Status status = prepare(request, &work);
  if (status.ok() && settings_.has_sequences) {
    if (request.sequence.empty()) {
      status = invalid("expected a sequence_id other than 0 for a model with sequences");
    } else if (auto sequence = begin_sequence(request); !sequence.ok()) {
      status = sequence.status();
    } else {
      work.key.clear();
      work.states = &(*sequence)->states;
      work.begins = work.states->empty();
      status = batcher_->run(work);
      end_sequence(request, *sequence);
    }
  } else if (status.ok()) {
    status = batcher_->run(work);
  }
  statistics_.request(status.ok(), since(begin, Clock::now()), work.queued, work.rows, work.times);
  if (!status.ok()) return status;
  return result_of(request, work);
}

absl::Status ModelVersion::stream(const InferRequest& request, StreamingModel::Send send) {
  if (!streaming_) {
    absl::StatusOr<InferResult> result = infer(request);
    if (!result.ok()) return result.status();
    send(*std::move(result));
    return absl::OkStatus();
  }
  const Clock::time_point begin = Clock::now();
  const absl::Status status = streaming_->stream(request, send);
  statistics_.request(status.ok(), since(begin, Clock::now()), {}, 1, {});
  return status;
}

absl::StatusOr<InferResult> ModelVersion::result_of(const InferRequest&, const Work& work) const {
  InferResult result;
  for (const size_t i : work.outputs) {
    const Tensor& values = work.values[i];
    InferOutput output;
    output.name = entry_->outputs[i].name;
    output.dtype = values.dtype();
    output.sizes = values.sizes();
    output.values = values;
    output.size = static_cast<size_t>(values.numel()) * item_size(values.dtype());
    if (work.rows_run != 0) {
      const size_t row = output.size / work.rows_run;
      output.sizes[0] = static_cast<int64_t>(work.rows);
      output.offset = row * work.first_row;
      output.size = row * work.rows;
    }
    if (is_string(entry_->outputs[i])) {
      if (output.sizes.empty()) {
        return absl::InternalError(
            absl::StrCat("[ModelInfer] expected strings as the output '", output.name, "', got a number"));
      }
      const auto width = static_cast<size_t>(output.sizes.back());
      output.sizes.pop_back();
      output.owned = width == 0 ? std::string(4 * elements_of(SizesView(output.sizes)), '\0')
                                : encode_strings(output.bytes(), width);
      output.values = Tensor();
      output.offset = 0;
      output.size = output.owned.size();
      output.is_strings = true;
    }
    result.outputs.push_back(std::move(output));
  }
  return result;
}

void ModelVersion::execute(size_t instance, absl::Span<Batcher::Job* const> batch) {
  std::vector<Work*> works;
  for (Batcher::Job* job : batch) works.push_back(static_cast<Work*>(job));
  const auto attempt = [&](absl::Span<Work* const> part) -> absl::Status {
    try {
      run(*instances_[instance], part);
      return absl::OkStatus();
    } catch (const Error& error) {
      return infer_status(error);
    } catch (const std::exception& error) {
      log_line(LogLevel::kError, {}, absl::StrCat("model ", name_, "/", number_, ": internal error: ", error.what()));
    } catch (...) {
      log_line(LogLevel::kError, {}, absl::StrCat("model ", name_, "/", number_, ": an exception of unknown type"));
    }
    return absl::InternalError("[ModelInfer] internal error");
  };
  const absl::Status status = attempt(works);
  // Another request's values may be the cause.
  for (Work* work : works) work->status = status.ok() || works.size() == 1 ? status : attempt({&work, 1});
}

void ModelVersion::run(ModelInstance& instance, absl::Span<Work* const> batch) {
  const Clock::time_point begin = Clock::now();
  const ModelInstance::Use use(instance);
  int64_t rows = 0;
  for (const Work* work : batch) rows += static_cast<int64_t>(work->rows);
  const bool is_batched = settings_.max_batch != 0;
  const int64_t run = is_batched ? static_cast<int64_t>(settings_.padded(static_cast<size_t>(rows))) : rows;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < entry_->inputs.size(); ++i) {
    Sizes sizes = batch[0]->inputs[i]->sizes;
    if (is_batched) sizes[0] = run;
    const DType dtype = entry_->inputs[i].dtype;
    inputs.push_back(empty(sizes, dtype, Device()));
    char* into = inputs.back().data_as<char>();
    for (const Work* work : batch) {
      const InferInput& input = *work->inputs[i];
      if (input.is_strings) {
        const auto width = static_cast<size_t>(input.sizes.back());
        decode_strings(input.bytes, width, into);
        into += width * elements_of(SizesView(input.sizes).first(input.sizes.size() - 1));
        continue;
      }
      copy_values(dtype, input.bytes, into);
      into += input.bytes.size();
    }
    if (run != rows) std::memset(into, 0, inputs.back().data_as<char>() + bytes_of(inputs.back()) - into);
  }
  const Clock::time_point copied = Clock::now();
  // The states of a sequence are replaced if the run succeeds.
  std::vector<Tensor> states;
  if (batch[0]->states != nullptr) {
    states = batch[0]->begins ? instance.make_states(*entry_) : *batch[0]->states;
  }
  std::vector<Tensor> values = instance.run(*entry_, inputs, &states);
  const Clock::time_point computed = Clock::now();
  // Later requests of a sequence change what an output may view.
  values = instance.to_host(std::move(values), entry_->states_in_place() != 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const ModelPort& port = entry_->outputs[i];
    check(ErrorKind::kRuntime, values[i].dtype() == port.dtype, "[ModelInfer] expected the output '", port.name,
          "' to be ", port.dtype, " as described, got ", values[i].dtype());
    check(ErrorKind::kRuntime, !is_batched || (values[i].dim() > 0 && values[i].size(0) == run),
          "[ModelInfer] expected the output '", port.name, "' to have ", run, " rows, as the inputs have, got ",
          values[i].meta());
  }
  if (batch[0]->states != nullptr) *batch[0]->states = std::move(states);
  BatchTimes times{since(begin, copied), since(copied, computed), since(computed, Clock::now())};
  size_t row = 0;
  for (Work* work : batch) {
    work->values = values;
    work->first_row = row;
    work->rows_run = batch.size() > 1 || run != rows ? static_cast<size_t>(run) : 0;
    work->batch_rows = static_cast<size_t>(rows);
    work->times = times;
    row += work->rows;
  }
  statistics_.batch(static_cast<uint64_t>(rows), times);
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
  for (const ModelPort& port : entry_->inputs) describe(port, config.add_input());
  for (const ModelPort& port : entry_->outputs) describe(port, config.add_output());
  return config;
}

}  // namespace tt::server
