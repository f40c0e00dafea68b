// The description of a native model: the file `program.pb` of a version's folder, parsed and checked.
//
// Files are untrusted: they may come from anybody who can write to the repository, or from a converter that read a
// hostile file. Parsing takes memory in proportion to the file, whose size is limited, and nothing in it is executed.
// Immutable after parsing; functions throw Error.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "engine/schema/device.h"
#include "engine/schema/dtype.h"
#include "engine/schema/meta.h"
#include "engine/schema/size_expression.h"
#include "engine/session/programs.h"

namespace tt::server {

inline constexpr int64_t kDynamic = -1;  // a size that a run decides

// An input or output.
struct ModelPort {
  struct Dim {
    int64_t size = 0;  // or kDynamic
    std::string name;  // of a dynamic size; empty: none
    int64_t min = 0;
    int64_t max = INT64_MAX;
  };
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<Dim> dims;
};

// A tensor that is kept between the requests of a sequence.
struct ModelState {
  std::string name;
  DType dtype = DType::kFloat32;
  Sizes sizes;  // at the beginning of a sequence
  bool in_place = false;
};

// What sizes must satisfy: v1::SizeRequirement.
struct ModelRequirement {
  enum class Relation : uint8_t { kEqual, kLess, kLessEqual };
  std::vector<SizeTerm> left, right;
  Relation relation = Relation::kEqual;
  bool expected = true;
  std::string where;
};

struct ModelEntry {
  std::string name;
  std::vector<ModelPort> inputs, outputs;
  std::vector<std::string> weights;
  std::vector<ModelState> states;
  std::vector<ModelRequirement> requirements;
  std::shared_ptr<const DefinedProgram> program;

  // Whether requests can be joined along their first dimensions: those of all inputs and outputs are dynamic and have
  // the same name or none, and there are no states.
  bool is_batchable() const;
  size_t states_in_place() const;
  // Throws Error (ValueError) unless inputs of these types satisfy the ports' bounds and the requirements. `weights`
  // and states complete the Program's inputs.
  void check_requirements(absl::Span<const TensorMeta* const> program_inputs) const;
};

struct ModelFile {
  static constexpr uint64_t kMaxBytes = uint64_t{32} << 20;
  static constexpr size_t kMaxEntries = 64, kMaxPorts = 1024, kMaxDims = 64, kMaxName = 512, kMaxWeights = 1u << 15;
  static constexpr size_t kMaxRequirements = 4096, kMaxAttributes = 256, kMaxAttributeBytes = 4096;
  // Signatures of inputs for which an entry's compiled form is kept.
  static constexpr size_t kMaxVariants = 64;

  std::string producer;
  std::string platform;  // "teletensor", "onnx"
  std::vector<ModelEntry> entries;
  std::map<std::string, std::string> attributes;

  // Null if there is none.
  const ModelEntry* find(std::string_view entry) const;
};

// Parses a serialized v1::Model, to be run on `device`.
ModelFile parse_model(const std::string& bytes, Device device = {});

}  // namespace tt::server
