// ModelSettings: how a model is served, from the file config.json or config.pbtxt of its folder.
//
// Both have the fields of inference.ModelConfig, as JSON or as protobuf's text format; unknown fields are errors. A
// folder without either is served with the default settings. Immutable; functions throw Error.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/schema/device.h"
#include "inference/grpc_service.pb.h"
#include "server/serving/model_file.h"
#include "server/serving/scheduler/batcher.h"

namespace tt::server {

struct ModelSettings {
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 20;  // of the file
  static constexpr int kMaxInstances = 32, kMaxLevels = 64, kMaxBatch = 65'536, kMaxPreferred = 64, kMaxWarmups = 32;

  // Instances on one device.
  struct Group {
    std::optional<Device> device;  // none: the CPU
    size_t count = 1;
  };

  inference::ModelConfig config;  // as the file has it
  std::vector<Group> groups{Group()};
  size_t max_batch = 0;  // 0: requests are not batched
  bool joins = false;    // requests share batches
  Batcher::Options batching;
  size_t default_level = 0;
  Batcher::Clock::duration default_timeout{};  // in the queue; 0: none
  bool allow_timeout_override = false;
  bool has_sequences = false;
  bool joins_sequences = false;  // requests of several sequences share batches
  size_t max_candidates = 0;     // sequences at a time, others wait until one ends; 0: no limit but the version's
  std::chrono::microseconds max_sequence_idle{60'000'000};
  // Of config.parameters:
  std::vector<std::string> principals;  // who may use the model; empty: everybody who may use models
  uint64_t memory_limit = 0;            // bytes of a version; 0: no limit
  bool warms_up = true;
  // To which a batch's rows are increased, by rows of zeros.
  enum class Padding : uint8_t { kNone, kPreferred, kPowersOfTwo } padding = Padding::kNone;

  // The rows with which a batch of `rows` runs.
  size_t padded(size_t rows) const;
  // Whether the configuration names versions or wants all, so that no other one serves if these cannot be loaded.
  bool chooses_versions() const { return config.version_policy().has_all() || config.version_policy().has_specific(); }
  // Whether the version should be served, of those that exist, in ascending order.
  std::vector<int64_t> served(const std::vector<int64_t>& versions) const;
};

// Reads the settings of the model `name`, whose folder it is.
ModelSettings read_settings(const std::filesystem::path& folder, const std::string& name);
// Interprets a configuration.
ModelSettings settings_of(const inference::ModelConfig& config, const std::string& name);
// Parses the text of config.json.
inference::ModelConfig parse_config(const std::string& json);

}  // namespace tt::server
