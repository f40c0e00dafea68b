#include "server/serving/model_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "engine/schema/sized_program.h"
#include "proto/wire.h"
#include "server/limits.h"
#include "server/session/program_cache.h"
#include "teletensor/v1/model.pb.h"

namespace tt::server {
namespace {

constexpr uint32_t kFormat = 1;
constexpr int kTermNumbers = 3;  // per term of an expression
constexpr int kTermKinds = 12;

// Messages and strings of a model apart from its Programs. Each takes some hundred bytes of memory once parsed, and may
// take two in the file.
constexpr size_t kMaxFields = size_t{1} << 18;

// Counts the fields that become objects, down to the ports, without allocating. The Programs, which are bytes here, are
// measured when they are decoded. Returns false if the encoding is malformed or there are too many.
bool count_fields(google::protobuf::io::CodedInputStream* stream, int depth, size_t* count) {
  using google::protobuf::internal::WireFormatLite;
  constexpr int kMaxDepth = 3;  // Model, Entry, Port
  constexpr int kEntries = 3;
  while (const uint32_t tag = stream->ReadTag()) {
    if (++*count > kMaxFields) return false;
    const bool is_nested = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED &&
                           depth + 1 < kMaxDepth &&
                           (depth == 0 ? WireFormatLite::GetTagFieldNumber(tag) == kEntries : true);
    constexpr int kWeights = 4, kProgram = 6;
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (!is_nested || (depth == 1 && (field == 1 || field == kWeights || field == kProgram))) {
      if (!WireFormatLite::SkipField(stream, tag)) return false;
      continue;
    }
    uint32_t size = 0;
    if (!stream->ReadVarint32(&size)) return false;
    const auto limit = stream->PushLimit(static_cast<int>(size));
    if (!count_fields(stream, depth + 1, count) || stream->BytesUntilLimit() != 0) return false;
    stream->PopLimit(limit);
  }
  return stream->ConsumedEntireMessage();
}

template <typename... Parts>
void require(bool ok, const Parts&... parts) {
  check(ErrorKind::kValue, ok, "[model] ", parts...);
}

DType dtype_of(uint32_t number, const std::string& name) {
  require(is_valid(number), "expected the number of a dtype for '", name, "', got ", number);
  return static_cast<DType>(number);
}

void check_name(const std::string& name, std::string_view what, absl::flat_hash_set<std::string>* names) {
  require(!name.empty() && name.size() <= ModelFile::kMaxName && printable(name) == name, "expected a name of 1 to ",
          ModelFile::kMaxName, " bytes of UTF-8 without control characters for ", what, ", got ", name.size(),
          " bytes");
  require(names->insert(name).second, "expected distinct names of ", what, ", got '", name, "' twice");
}

ModelPort port_of(const v1::Port& wire) {
  ModelPort port;
  port.name = wire.name();
  port.dtype = dtype_of(wire.dtype(), wire.name());
  const auto dims = static_cast<size_t>(wire.sizes_size());
  require(dims <= ModelFile::kMaxDims, "expected at most ", ModelFile::kMaxDims, " dimensions of '", port.name,
          "', got ", dims);
  for (const int length : {wire.size_names_size(), wire.min_sizes_size(), wire.max_sizes_size()}) {
    require(length == 0 || length == wire.sizes_size(), "expected a name and bounds for each of the ", dims,
            " dimensions of '", port.name, "', got ", length);
  }
  for (int i = 0; i < wire.sizes_size(); ++i) {
    ModelPort::Dim dim;
    dim.size = wire.sizes(i);
    require(dim.size >= kDynamic, "expected sizes of '", port.name, "' of at least -1, got ", dim.size);
    if (dim.size == kDynamic) {
      if (wire.size_names_size() != 0) dim.name = printable(wire.size_names(i));
      require(dim.name.size() <= ModelFile::kMaxName, "the name of a size of '", port.name, "' is too long");
      if (wire.min_sizes_size() != 0) dim.min = std::max<int64_t>(wire.min_sizes(i), 0);
      if (wire.max_sizes_size() != 0 && wire.max_sizes(i) > 0) dim.max = wire.max_sizes(i);
      require(dim.min <= dim.max, "expected bounds of '", port.name, "' in ascending order, got ", dim.min, " and ",
              dim.max);
    }
    port.dims.push_back(std::move(dim));
  }
  return port;
}

template <typename Field>
std::vector<ModelPort> ports_of(const Field& wire, std::string_view what) {
  require(static_cast<size_t>(wire.size()) <= ModelFile::kMaxPorts, "expected at most ", ModelFile::kMaxPorts, " ",
          what, ", got ", wire.size());
  std::vector<ModelPort> ports;
  absl::flat_hash_set<std::string> names;
  for (const v1::Port& port : wire) {
    check_name(port.name(), what, &names);
    ports.push_back(port_of(port));
  }
  return ports;
}

std::vector<ModelState> states_of(const v1::Entry& wire) {
  require(static_cast<size_t>(wire.states_size()) <= ModelFile::kMaxPorts, "expected at most ", ModelFile::kMaxPorts,
          " states, got ", wire.states_size());
  std::vector<ModelState> states;
  absl::flat_hash_set<std::string> names;
  for (const v1::State& each : wire.states()) {
    check_name(each.name(), "states", &names);
    ModelState state{each.name(), dtype_of(each.dtype(), each.name()), {}, each.in_place()};
    require(static_cast<size_t>(each.sizes_size()) <= ModelFile::kMaxDims, "expected at most ", ModelFile::kMaxDims,
            " dimensions of the state '", each.name(), "', got ", each.sizes_size());
    for (const int64_t size : each.sizes()) {
      require(size >= kDynamic, "expected sizes of at least -1, got ", size);
      state.sizes.push_back(std::max<int64_t>(size, 0));
    }
    require(states.empty() || !states.back().in_place || state.in_place, "expected states that are changed in place ",
            "last, got '", state.name, "' after one of them");
    states.push_back(std::move(state));
  }
  return states;
}

template <typename Field>
std::vector<SizeTerm> terms_of(const Field& wire) {
  require(wire.size() % kTermNumbers == 0 && wire.size() <= kTermNumbers * static_cast<int>(kMaxSizeTerms),
          "expected three numbers per term, and at most ", kMaxSizeTerms, " terms, got ", wire.size(), " numbers");
  std::vector<SizeTerm> terms;
  for (int i = 0; i < wire.size(); i += kTermNumbers) {
    require(wire.Get(i) >= 0 && wire.Get(i) < kTermKinds, "expected a kind of term below ", kTermKinds, ", got ",
            wire.Get(i));
    terms.push_back(
        {static_cast<SizeTerm::Kind>(wire.Get(i)), wire.Get(i + 1), static_cast<uint64_t>(wire.Get(i + 2))});
    const SizeTerm& term = terms.back();
    require(!term.describes_value() || (term.name <= Program::kMaxNames && term.number >= 0),
            "expected a name of the Program in a requirement, got ", term.name);
  }
  check_size_expression(terms);
  return terms;
}

std::vector<ModelRequirement> requirements_of(const v1::Entry& wire) {
  require(static_cast<size_t>(wire.requirements_size()) <= ModelFile::kMaxRequirements, "expected at most ",
          ModelFile::kMaxRequirements, " requirements, got ", wire.requirements_size());
  std::vector<ModelRequirement> all;
  for (const v1::SizeRequirement& each : wire.requirements()) {
    require(each.relation() <= 2, "expected a relation of 0 to 2, got ", each.relation());
    all.push_back({terms_of(each.left()), terms_of(each.right()),
                   static_cast<ModelRequirement::Relation>(each.relation()), each.expected(),
                   printable(each.where(), ModelFile::kMaxName)});
  }
  return all;
}

ModelEntry entry_of(v1::Entry* wire, Device device) {
  ModelEntry entry;
  entry.name = wire->name();
  entry.inputs = ports_of(wire->inputs(), "inputs");
  entry.outputs = ports_of(wire->outputs(), "outputs");
  entry.states = states_of(*wire);
  require(static_cast<size_t>(wire->weights_size()) <= ModelFile::kMaxWeights, "expected at most ",
          ModelFile::kMaxWeights, " weights, got ", wire->weights_size());
  for (std::string& name : *wire->mutable_weights()) entry.weights.push_back(std::move(name));
  entry.requirements = requirements_of(*wire);
  const size_t in_place = entry.states_in_place();
  const size_t inputs = entry.inputs.size() + entry.weights.size() + entry.states.size();
  entry.program = decode_definition(Limits(), std::move(*wire->mutable_program()),
                                    {inputs - in_place, in_place, wire->exact()}, ModelFile::kMaxVariants, device);
  for (const Instruction& instruction : entry.program->program().instructions()) {
    require(instruction.op->session == SessionUse::kNone, "expected operators that need no session, got ",
            instruction.op->name);
  }
  const size_t outputs = entry.program->program().outputs().size();
  const size_t expected = entry.outputs.size() + entry.states.size() - in_place;
  require(outputs == expected, "expected ", expected, " outputs of the Program (", entry.outputs.size(),
          " outputs and the states that it returns), got ", outputs);
  return entry;
}

}  // namespace

bool ModelEntry::is_batchable() const {
  if (!states.empty() || inputs.empty() || outputs.empty()) return false;
  const auto all = [&](auto accepts) {
    return std::all_of(inputs.begin(), inputs.end(), accepts) && std::all_of(outputs.begin(), outputs.end(), accepts);
  };
  if (inputs[0].dims.empty()) return false;
  const std::string& name = inputs[0].dims[0].name;
  return all([&](const ModelPort& port) {
    return !port.dims.empty() && port.dims[0].size == kDynamic && port.dims[0].name == name;
  });
}

size_t ModelEntry::states_in_place() const {
  return static_cast<size_t>(std::count_if(states.begin(), states.end(), [](const auto& s) { return s.in_place; }));
}

void ModelEntry::check_requirements(absl::Span<const TensorMeta* const> program_inputs) const {
  if (requirements.empty()) return;
  const ProgramTypes types = with_sizes(program->program(), program_inputs, /*grad_enabled=*/false).types;
  const auto value_of = [&](const SizeTerm& term) {
    require(types.contains(term.name), "a requirement names %", term.name, ", which the Program does not have");
    const TensorMeta& meta = types.of(term.name);
    if (term.kind == SizeTerm::Kind::kOffset) return meta.offset;
    if (term.kind == SizeTerm::Kind::kIsContiguous) return int64_t{meta.is_contiguous()};
    const Sizes& numbers = term.kind == SizeTerm::Kind::kStride ? meta.strides : meta.sizes;
    require(term.number < static_cast<int64_t>(numbers.size()), "a requirement names dimension ", term.number, " of %",
            term.name, ", which has ", numbers.size());
    return numbers[static_cast<size_t>(term.number)];
  };
  for (const ModelRequirement& each : requirements) {
    const int64_t left = evaluate(each.left, value_of), right = evaluate(each.right, value_of);
    const bool holds = each.relation == ModelRequirement::Relation::kEqual  ? left == right
                       : each.relation == ModelRequirement::Relation::kLess ? left < right
                                                                            : left <= right;
    constexpr const char* kSymbols[] = {" == ", " < ", " <= "};
    require(holds == each.expected, "expected sizes with ", each.expected ? "" : "not ", to_string(each.left),
            kSymbols[static_cast<size_t>(each.relation)], to_string(each.right),
            each.where.empty() ? "" : absl::StrCat(" (", each.where, ")"), ", got ", left, " and ", right);
  }
}

const ModelEntry* ModelFile::find(std::string_view entry) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const ModelEntry& e) { return e.name == entry; });
  return found == entries.end() ? nullptr : &*found;
}

ModelFile parse_model(const std::string& bytes, Device device) {
  require(bytes.size() <= ModelFile::kMaxBytes, "expected a description of at most ", ModelFile::kMaxBytes,
          " bytes, got ", bytes.size());
  require(!bytes.empty(), "expected a serialized Model, got an empty file");
  size_t fields = 0;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  const bool is_whole = count_fields(&stream, 0, &fields);
  require(fields <= kMaxFields, "expected a serialized Model with at most ", kMaxFields, " fields");
  require(is_whole, "expected a serialized Model (teletensor.serving.save writes it), got ", bytes.size(),
          " bytes that are damaged, incomplete or of another kind");
  v1::Model wire;
  require(wire.ParseFromString(bytes), "expected a serialized Model");
  require(wire.format() == kFormat, "expected format ", kFormat, ", got ", wire.format());
  require(wire.entries_size() >= 1 && static_cast<size_t>(wire.entries_size()) <= ModelFile::kMaxEntries,
          "expected 1 to ", ModelFile::kMaxEntries, " entries, got ", wire.entries_size());
  require(wire.attributes().size() <= ModelFile::kMaxAttributes, "expected at most ", ModelFile::kMaxAttributes,
          " attributes, got ", wire.attributes().size());
  ModelFile file;
  file.producer = printable(wire.producer(), ModelFile::kMaxName);
  file.platform = wire.platform().empty() ? "teletensor" : printable(wire.platform(), ModelFile::kMaxName);
  for (const auto& [key, value] : wire.attributes()) {
    require(key.size() + value.size() <= ModelFile::kMaxAttributeBytes, "expected attributes of at most ",
            ModelFile::kMaxAttributeBytes, " bytes, got ", key.size() + value.size());
    file.attributes[key] = value;
  }
  for (v1::Entry& entry : *wire.mutable_entries()) {
    require(entry.name().size() <= ModelFile::kMaxName && file.find(entry.name()) == nullptr,
            "expected distinct short names of entries, got '", entry.name().substr(0, ModelFile::kMaxName), "'");
    file.entries.push_back(entry_of(&entry, device));
  }
  return file;
}

}  // namespace tt::server
