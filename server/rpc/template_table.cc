#include "server/rpc/template_table.h"

#include "absl/strings/str_cat.h"
#include "engine/memory/bytes.h"
#include "engine/schema/program.h"
#include "proto/instruction_template.h"

namespace tt::server {
namespace {

constexpr uint64_t kMaxTableBytes = 8 << 20;

Error invalid(absl::string_view reason) {
  return Error(ErrorKind::kValue, absl::StrCat("malformed frame: ", reason, " in its layout"));
}

// Estimated memory of an instruction as a message and in a Program.
uint64_t memory_of(const v1::Instruction& instruction) { return 2 * instruction.SpaceUsedLong() + sizeof(Instruction); }

}  // namespace

TemplateTable::TemplateTable(const Limits& limits, std::shared_ptr<Account> account)
    : limits_(limits), charge_(std::move(account), 0) {}

void TemplateTable::forget() {
  templates_.clear();
  arena_.Reset();
  charge_.set(0);
}

bool TemplateTable::remember(const v1::Instruction& instruction) {
  if (templates_.size() >= limits_.max_templates) return false;
  auto* copy = google::protobuf::Arena::CreateMessage<v1::Instruction>(&arena_);
  *copy = instruction;
  size_t operands = 0;
  const auto count = [&](auto operand) {
    ++operands;
    return operand;
  };
  layout::replace_operands(copy, count, count);
  templates_.push_back({copy, operands, memory_of(*copy)});
  charge_.set(arena_.SpaceAllocated());
  return arena_.SpaceAllocated() <= kMaxTableBytes;
}

bool TemplateTable::read_layout(const v1::Frame& frame) {
  constexpr size_t kMax = layout::kMaxElementsWithCopies;
  const auto& layout = frame.layout();
  const auto& copies = frame.copies();
  layout_.clear();
  auto next = layout.begin();
  for (int i = 0; i + 2 < copies.size(); i += 3) {
    const uint64_t before = copies[i], distance = copies[i + 1], length = copies[i + 2];
    if (before > static_cast<uint64_t>(layout.end() - next)) return false;
    layout_.insert(layout_.end(), next, next + static_cast<int>(before));
    next += static_cast<int>(before);
    if (distance == 0 || distance > layout_.size() || length > kMax || layout_.size() + length > kMax) {
      return false;
    }
    // The part may extend into its copy.
    for (uint64_t j = 0; j < length; ++j) layout_.push_back(layout_[layout_.size() - distance]);
  }
  layout_.insert(layout_.end(), next, layout.end());
  return true;
}

std::optional<Error> TemplateTable::expand(v1::Frame* frame, v1::Frame* scratch, uint64_t max_bytes) {
  if (!read_layout(*frame)) return invalid("an invalid copy");
  const std::vector<uint64_t>& layout = layout_;
  uint64_t next = frame->next_name();
  uint64_t bytes = 0;
  int plain = 0;
  for (size_t i = 0; i < layout.size();) {
    const uint64_t code = layout[i++];
    if (code == layout::kForget) {
      forget();
      continue;
    }
    if (static_cast<uint64_t>(scratch->instructions_size()) >= limits_.max_instructions) {
      return Error(ErrorKind::kValue,
                   absl::StrCat("a frame must have at most ", limits_.max_instructions, " instructions, got more"));
    }
    v1::Instruction* instruction = scratch->add_instructions();
    if (code < layout::kFirstTemplate) {
      if (plain == frame->instructions_size()) return invalid("too few instructions for the references");
      instruction->Swap(frame->mutable_instructions(plain++));
      if (code == layout::kRemember && !remember(*instruction)) return invalid("too many templates");
    } else {
      if (code - layout::kFirstTemplate >= templates_.size()) return invalid("a reference to an unknown template");
      const Template& of = templates_[code - layout::kFirstTemplate];
      if (layout.size() - i < of.operands) return invalid("too few operands");
      bytes += of.bytes;
      if (bytes > max_bytes) {
        return Error(ErrorKind::kOutOfMemory,
                     absl::StrCat("a frame of repeated instructions needs more than the ", bytes_text(max_bytes),
                                  " of host memory that the session has left"));
      }
      *instruction = *of.instruction;
      layout::replace_operands(
          instruction, [&](uint64_t) { return layout::decode_handle(layout[i++], next); },
          [&](int64_t) { return layout::decode_integer(layout[i++]); });
    }
    next = layout::next_name(*instruction, next);
  }
  if (plain != frame->instructions_size()) return invalid("too few references to the instructions");
  frame->mutable_instructions()->Swap(scratch->mutable_instructions());
  frame->mutable_layout()->Clear();
  frame->mutable_copies()->Clear();
  return std::nullopt;
}

}  // namespace tt::server
