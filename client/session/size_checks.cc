#include "client/session/size_checks.h"

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "engine/schema/sized_program.h"

namespace tt::client {
namespace {

constexpr size_t kMaxKnown = 1024;

std::string describe_requirement(const SizeRequirement& requirement) {
  using Relation = SizeRequirement::Relation;
  const char* const symbol = requirement.relation == Relation::kEqual  ? " == "
                             : requirement.relation == Relation::kLess ? " < "
                                                                       : " <= ";
  return absl::StrCat(requirement.expected ? "" : "not ", to_string(requirement.left), symbol,
                      to_string(requirement.right));
}

}  // namespace

SizeChecks::SizeChecks(tt::Program program, std::vector<TensorMeta> inputs, std::vector<TensorMeta> captured,
                       std::vector<SizeRequirement> requirements, std::vector<std::pair<Slot, size_t>> ranks)
    : program_(std::move(program)),
      inputs_(std::move(inputs)),
      captured_(std::move(captured)),
      requirements_(std::move(requirements)),
      ranks_(std::move(ranks)) {}

bool SizeChecks::hold(absl::Span<const TensorMeta* const> inputs) {
  std::vector<int64_t> key;
  for (const TensorMeta* input : inputs) {
    key.insert(key.end(), input->sizes.begin(), input->sizes.end());
    key.insert(key.end(), input->strides.begin(), input->strides.end());
    key.push_back(input->offset);
  }
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  if (known_.size() >= kMaxKnown) known_.clear();
  return known_.emplace(std::move(key), evaluate(inputs)).first->second;
}

bool SizeChecks::evaluate(absl::Span<const TensorMeta* const> inputs) {
  std::vector<const TensorMeta*> all(inputs.begin(), inputs.end());
  for (const TensorMeta& meta : captured_) all.push_back(&meta);
  absl::Span<const SizeRequirement> left = requirements_;
  const auto visit = [&](size_t instruction, const ProgramTypes& types) {
    for (; !left.empty() && left[0].instruction <= instruction; left.remove_prefix(1)) {
      check(ErrorKind::kValue, evaluate_requirement(left[0], types).holds,
            "expected the decision of the capture: ", describe_requirement(left[0]));
    }
  };
  try {
    const ProgramTypes types = with_sizes(program_, all, /*grad_enabled=*/true, visit).types;
    for (const auto& [name, rank] : ranks_) {
      check(ErrorKind::kValue, types.of(name).sizes.size() == rank, "expected ", rank, " dimensions of %", name);
    }
  } catch (const Error& error) {  // also of a call that rejects the sizes
    failure_ = error.what();
    return false;
  }
  return true;
}

}  // namespace tt::client
