#include "server/serving/settings.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "engine/schema/error.h"

namespace tt::server {
namespace {

template <typename... Parts>
void require(bool ok, const Parts&... parts) {
  check(ErrorKind::kValue, ok, "[model] ", parts...);
}

std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  require(!error && size <= ModelSettings::kMaxBytes, "expected ", path.filename().native(), " to have at most ",
          ModelSettings::kMaxBytes, " bytes");
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::vector<ModelSettings::Group> groups_of(const inference::ModelConfig& config) {
  using inference::ModelInstanceGroup;
  std::vector<ModelSettings::Group> groups;
  int total = 0;
  for (const ModelInstanceGroup& wire : config.instance_group()) {
    const int count = std::max(wire.count(), 1);
    require(wire.kind() != ModelInstanceGroup::KIND_MODEL, "expected an instance group of KIND_AUTO, KIND_CPU or ",
            "KIND_GPU, got KIND_MODEL");
    require(wire.gpus().empty() || wire.kind() != ModelInstanceGroup::KIND_CPU, "expected no GPUs of KIND_CPU");
    total += count * std::max(wire.gpus_size(), 1);
    require(wire.count() >= 0 && count <= ModelSettings::kMaxInstances && total <= ModelSettings::kMaxInstances,
            "expected at most ", ModelSettings::kMaxInstances, " instances, got ", total);
    if (wire.kind() == ModelInstanceGroup::KIND_CPU) {
      groups.push_back({Device(), static_cast<size_t>(count)});
    } else if (wire.gpus().empty()) {
      std::optional<Device> device;
      if (wire.kind() == ModelInstanceGroup::KIND_GPU) device = Device{DeviceType::kCUDA, 0};
      groups.push_back({device, static_cast<size_t>(count)});
    }
    for (const int gpu : wire.gpus()) {
      require(gpu >= 0 && gpu < 128, "expected the number of a GPU, got ", gpu);
      groups.push_back({Device{DeviceType::kCUDA, static_cast<int8_t>(gpu)}, static_cast<size_t>(count)});
    }
  }
  if (groups.empty()) groups.emplace_back();
  return groups;
}

void set_delay(uint64_t microseconds, Batcher::Options* batching) {
  constexpr uint64_t kMaxDelay = 60'000'000;
  require(microseconds <= kMaxDelay, "expected max_queue_delay_microseconds of at most ", kMaxDelay, ", got ",
          microseconds);
  batching->max_delay = std::chrono::microseconds(microseconds);
}

template <typename Sizes>
void set_preferred(const inference::ModelConfig& config, const Sizes& sizes, Batcher::Options* batching) {
  require(sizes.size() <= ModelSettings::kMaxPreferred, "expected at most ", ModelSettings::kMaxPreferred,
          " sizes in preferred_batch_size, got ", sizes.size());
  for (const int rows : sizes) {
    require(rows >= 1 && rows <= config.max_batch_size(), "expected preferred_batch_size of 1 to ",
            config.max_batch_size(), ", got ", rows);
    batching->preferred.push_back(static_cast<size_t>(rows));
  }
  std::sort(batching->preferred.begin(), batching->preferred.end());
}

void set_batching(const inference::ModelConfig& config, ModelSettings* settings) {
  Batcher::Options& batching = settings->batching;
  batching.max_rows = std::max<size_t>(settings->max_batch, 1);
  if (!config.has_dynamic_batching()) return;
  const inference::ModelDynamicBatching& wire = config.dynamic_batching();
  require(settings->max_batch != 0, "dynamic_batching requires max_batch_size");
  settings->joins = true;
  require(!wire.preserve_ordering(), "preserve_ordering is not supported: responses of a stream are in the order of ",
          "its requests, those of different calls are not");
  set_preferred(config, wire.preferred_batch_size(), &batching);
  set_delay(wire.max_queue_delay_microseconds(), &batching);
  require(wire.priority_levels() <= ModelSettings::kMaxLevels, "expected at most ", ModelSettings::kMaxLevels,
          " priority_levels, got ", wire.priority_levels());
  if (wire.priority_levels() != 0) {
    batching.levels = wire.priority_levels();
    require(wire.default_priority_level() >= 1 && wire.default_priority_level() <= wire.priority_levels(),
            "expected default_priority_level of 1 to ", wire.priority_levels(), ", got ",
            wire.default_priority_level());
    settings->default_level = wire.default_priority_level() - 1;
  }
  const inference::ModelQueuePolicy& policy = wire.default_queue_policy();
  batching.max_queue = policy.max_queue_size();
  batching.delays = policy.timeout_action() == inference::ModelQueuePolicy::DELAY;
  require(policy.default_timeout_microseconds() <= uint64_t{1} << 40, "expected a default_timeout_microseconds below ",
          uint64_t{1} << 40);
  settings->default_timeout = std::chrono::microseconds(policy.default_timeout_microseconds());
  settings->allow_timeout_override = policy.allow_timeout_override();
}

// A batch has a request of each of several sequences, as those of dynamic_batching have requests.
void set_sequence_batching(const inference::ModelConfig& config, ModelSettings* settings) {
  const inference::ModelSequenceBatching& wire = config.sequence_batching();
  if (!config.has_sequence_batching()) return;
  if (wire.max_sequence_idle_microseconds() != 0) {
    settings->max_sequence_idle =
        std::chrono::microseconds(std::min<uint64_t>(wire.max_sequence_idle_microseconds(), uint64_t{86'400'000'000}));
  }
  Batcher::Options& batching = settings->batching;
  const bool is_batched = settings->max_batch != 0;
  settings->joins_sequences = is_batched && (wire.has_direct() || wire.has_oldest());
  if (wire.has_oldest()) {
    require(!wire.oldest().preserve_ordering(),
            "preserve_ordering is not supported: the requests of a sequence run in ",
            "order, those of different ones do not");
    require(wire.oldest().max_candidate_sequences() >= 0, "expected max_candidate_sequences of 0 or more, got ",
            wire.oldest().max_candidate_sequences());
    require(is_batched ||
                (wire.oldest().max_queue_delay_microseconds() == 0 && wire.oldest().preferred_batch_size().empty()),
            "the strategy oldest requires max_batch_size if sequences wait for each other");
    settings->max_candidates = static_cast<size_t>(wire.oldest().max_candidate_sequences());
    set_delay(wire.oldest().max_queue_delay_microseconds(), &batching);
    set_preferred(config, wire.oldest().preferred_batch_size(), &batching);
  } else if (wire.has_direct()) {
    const float share = wire.direct().minimum_slot_utilization();
    require(share >= 0 && share <= 1, "expected minimum_slot_utilization of 0 to 1, got ", share);
    require(is_batched || (wire.direct().max_queue_delay_microseconds() == 0 && share == 0),
            "the strategy direct requires max_batch_size if sequences wait for each other");
    // Without a least number of rows, as in Triton, no batch waits.
    batching.enough_rows =
        std::max<size_t>(static_cast<size_t>(std::ceil(share * static_cast<float>(settings->max_batch))), 1);
    set_delay(wire.direct().max_queue_delay_microseconds(), &batching);
  }
}

void set_parameters(const inference::ModelConfig& config, ModelSettings* settings) {
  for (const auto& [key, parameter] : config.parameters()) {
    const std::string& value = parameter.string_value();
    if (key == "principals") {
      settings->principals = absl::StrSplit(value, ',', absl::SkipWhitespace());
    } else if (key == "memory_limit") {
      require(absl::SimpleAtoi(value, &settings->memory_limit), "expected memory_limit in bytes, got '", value, "'");
    } else if (key == "warmup") {
      require(value == "none" || value == "default", "expected warmup to be none or default, got '", value, "'");
      settings->warms_up = value == "default";
    } else if (key == "batch_padding") {
      require(value == "none" || value == "preferred" || value == "powers_of_two",
              "expected batch_padding to be none, preferred or powers_of_two, got '", value, "'");
      require(value == "none" || settings->max_batch != 0, "batch_padding requires max_batch_size");
      require(value != "preferred" || !settings->batching.preferred.empty(),
              "batch_padding preferred requires preferred_batch_size");
      settings->padding = value == "none"        ? ModelSettings::Padding::kNone
                          : value == "preferred" ? ModelSettings::Padding::kPreferred
                                                 : ModelSettings::Padding::kPowersOfTwo;
    } else {
      require(false, "expected the parameters principals, memory_limit, warmup and batch_padding, got '",
              key.substr(0, 100), "'");
    }
  }
}

}  // namespace

inference::ModelConfig parse_config(const std::string& json) {
  inference::ModelConfig config;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &config);
  require(status.ok(), "the configuration is invalid: ", std::string(status.message()).substr(0, 300));
  return config;
}

ModelSettings settings_of(const inference::ModelConfig& config, const std::string& name) {
  ModelSettings settings;
  settings.config = config;
  require(config.name().empty() || config.name() == name, "expected the configuration of '", name, "', got that of '",
          config.name(), "'");
  require(config.backend().empty() || config.backend() == "teletensor", "expected the backend teletensor, got '",
          config.backend(), "'");
  require(config.max_batch_size() >= 0 && config.max_batch_size() <= ModelSettings::kMaxBatch,
          "expected max_batch_size of 0 to ", ModelSettings::kMaxBatch, ", got ", config.max_batch_size());
  settings.max_batch = static_cast<size_t>(config.max_batch_size());
  settings.groups = groups_of(config);
  set_batching(config, &settings);
  settings.batching.instances = 0;
  for (const ModelSettings::Group& group : settings.groups) settings.batching.instances += group.count;
  settings.has_sequences = config.has_sequence_batching();
  set_sequence_batching(config, &settings);
  require(config.model_warmup_size() <= ModelSettings::kMaxWarmups, "expected at most ", ModelSettings::kMaxWarmups,
          " entries of model_warmup, got ", config.model_warmup_size());
  set_parameters(config, &settings);
  return settings;
}

ModelSettings read_settings(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  if (std::filesystem::is_regular_file(folder / "config.json", error)) {
    return settings_of(parse_config(read_text(folder / "config.json")), name);
  }
  inference::ModelConfig config;
  if (std::filesystem::is_regular_file(folder / "config.pbtxt", error)) {
    google::protobuf::TextFormat::Parser parser;
    parser.SetRecursionLimit(20);
    struct Errors final : google::protobuf::io::ErrorCollector {
      std::string first;
      void AddError(int line, int column, const std::string& message) override {
        if (first.empty()) first = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
      }
    } errors;
    parser.RecordErrorsTo(&errors);
    const bool parsed = parser.ParseFromString(read_text(folder / "config.pbtxt"), &config);
    require(parsed, "config.pbtxt is invalid: ", errors.first.substr(0, 300));
  }
  return settings_of(config, name);
}

size_t ModelSettings::padded(size_t rows) const {
  if (padding == Padding::kPowersOfTwo) return std::max(rows, std::min(std::bit_ceil(rows), max_batch));
  if (padding == Padding::kNone) return rows;
  const auto found = std::lower_bound(batching.preferred.begin(), batching.preferred.end(), rows);
  return found == batching.preferred.end() ? rows : *found;
}

std::vector<int64_t> ModelSettings::served(const std::vector<int64_t>& versions) const {
  const inference::ModelVersionPolicy& policy = config.version_policy();
  if (policy.has_all()) return versions;
  if (policy.has_specific()) {
    std::vector<int64_t> chosen;
    for (const int64_t version : versions) {
      const auto& wanted = policy.specific().versions();
      if (std::find(wanted.begin(), wanted.end(), version) != wanted.end()) chosen.push_back(version);
    }
    return chosen;
  }
  const size_t count = policy.has_latest() ? std::max<size_t>(policy.latest().num_versions(), 1) : 1;
  return {versions.end() - static_cast<std::ptrdiff_t>(std::min(count, versions.size())), versions.end()};
}

}  // namespace tt::server
