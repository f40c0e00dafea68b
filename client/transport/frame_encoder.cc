#include "client/transport/frame_encoder.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "proto/instruction_template.h"

namespace tt::client {
namespace {

constexpr size_t kMaxKeyBytes = 512;                     // per template
constexpr size_t kMaxOperands = 4096;                    // per template
constexpr size_t kMaxTemplateBytes = size_t{256} << 10;  // total over all templates; the engine allows a multiple
constexpr size_t kHashes = size_t{1} << 13;              // a loop with more instructions is not recognised as one

template <typename T>
void append(std::string* key, T value) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename Values>
void append_values(std::string* key, const Values& values) {
  append(key, values.size());
  key->append(reinterpret_cast<const char*>(values.data()),
              static_cast<size_t>(values.size()) * sizeof(*values.data()));
}

}  // namespace

FrameEncoder::FrameEncoder(const Options& options) : options_(options), compressor_(options.compression) {
  if (options_.max_templates != 0) hashes_.resize(kHashes);
}

bool FrameEncoder::describe(const v1::Instruction& instruction, uint64_t next) {
  key_.clear();
  operands_.clear();
  bool can_be_encoded = true;
  const auto add_handle = [&](uint64_t handle) {
    can_be_encoded = can_be_encoded && handle <= layout::kMaxHandle;
    operands_.push_back(layout::encode_handle(handle, next));
  };
  // Every argument has at least nine bytes, so that the engine's memory for a template is a small multiple of its key.
  for (const v1::Argument& arg : instruction.args()) {
    append(&key_, static_cast<char>(arg.value_case()));
    switch (arg.value_case()) {
      case v1::Argument::VALUE_NOT_SET: append(&key_, uint64_t{0}); break;
      case v1::Argument::kNone: append(&key_, uint64_t{arg.none()}); break;
      case v1::Argument::kHandle:
        append(&key_, uint64_t{0});
        add_handle(arg.handle());
        break;
      case v1::Argument::kHandles:
        append(&key_, uint64_t{static_cast<uint64_t>(arg.handles().values_size())});
        std::for_each(arg.handles().values().begin(), arg.handles().values().end(), add_handle);
        break;
      case v1::Argument::kBoolean: append(&key_, uint64_t{arg.boolean()}); break;
      case v1::Argument::kInteger:
        append(&key_, uint64_t{0});
        operands_.push_back(layout::encode_integer(arg.integer()));
        break;
      case v1::Argument::kReal: append(&key_, arg.real()); break;
      case v1::Argument::kNatural: append(&key_, arg.natural()); break;
      case v1::Argument::kComplex:
        append(&key_, arg.complex().real());
        append(&key_, arg.complex().imaginary());
        break;
      case v1::Argument::kIntegers: append_values(&key_, arg.integers().values()); break;
      case v1::Argument::kReals: append_values(&key_, arg.reals().values()); break;
      case v1::Argument::kCharacters: append_values(&key_, arg.characters()); break;
    }
    if (key_.size() > kMaxKeyBytes) return false;
  }
  append(&key_, instruction.op());
  append(&key_, instruction.site());
  append(&key_, instruction.result_count());
  append(&key_, instruction.into_size());
  append(&key_, instruction.release_size());
  append(&key_, static_cast<char>((instruction.no_grad() ? 1 : 0) | (instruction.inference() ? 2 : 0) |
                                  (instruction.result() != 0 ? 4 : 0)));
  append(&key_, static_cast<char>(instruction.default_dtype()));
  if (instruction.result() != 0) add_handle(instruction.result());
  std::for_each(instruction.into().begin(), instruction.into().end(), add_handle);
  std::for_each(instruction.release().begin(), instruction.release().end(), add_handle);
  return can_be_encoded && operands_.size() <= kMaxOperands;
}

bool FrameEncoder::occurred_before() {
  const size_t hash = absl::HashOf(absl::string_view(key_));
  uint32_t& last = hashes_[hash % kHashes];
  const uint32_t mark = static_cast<uint32_t>(hash >> 32) | 1;
  return std::exchange(last, mark) == mark;
}

void FrameEncoder::forget() {
  templates_.clear();
  template_bytes_ = 0;
  compact_.add_layout(layout::kForget);
}

void FrameEncoder::shorten_layout() {
  constexpr int kMinElements = 6;  // a shorter copy is not smaller
  constexpr size_t kPositions = 1024;
  if (static_cast<size_t>(compact_.layout_size()) > layout::kMaxElementsWithCopies) return;
  google::protobuf::RepeatedField<uint64_t> all;
  all.Swap(compact_.mutable_layout());
  positions_.assign(kPositions, -1);
  int copied_through = 0;
  for (int i = 0; i + kMinElements <= all.size();) {
    int& last = positions_[absl::HashOf(all[i], all[i + 1], all[i + 2], all[i + 3]) % kPositions];
    const int from = std::exchange(last, i);
    int length = 0;
    while (from >= 0 && i + length < all.size() && all[from + length] == all[i + length]) ++length;
    if (length < kMinElements) {
      ++i;
      continue;
    }
    compact_.mutable_layout()->Add(all.begin() + copied_through, all.begin() + i);
    compact_.add_copies(static_cast<uint64_t>(i - copied_through));
    compact_.add_copies(static_cast<uint64_t>(i - from));
    compact_.add_copies(static_cast<uint64_t>(length));
    copied_through = i += length;
  }
  if (copied_through == 0) return all.Swap(compact_.mutable_layout());
  compact_.mutable_layout()->Add(all.begin() + copied_through, all.end());
}

uint64_t FrameEncoder::code_of_described() {
  if (auto found = templates_.find(absl::string_view(key_)); found != templates_.end()) {
    return layout::kFirstTemplate + found->second;
  }
  if (!occurred_before()) return layout::kPlain;
  const size_t bytes = key_.size() + operands_.size() * sizeof(uint64_t);
  if (templates_.size() >= options_.max_templates || template_bytes_ + bytes > kMaxTemplateBytes) forget();
  templates_.emplace(key_, static_cast<uint32_t>(templates_.size()));
  template_bytes_ += bytes;
  return layout::kRemember;
}

const v1::Frame& FrameEncoder::encode(const v1::Frame& frame) { return compress(shorten(frame)); }

const v1::Frame& FrameEncoder::compress(const v1::Frame& frame) {
  const double rate = options_.rate == nullptr ? 0 : options_.rate->current();
  if (!compressor_.is_wanted(rate) || frame.ByteSizeLong() < ChunkCompressor::kMinBytes) return frame;
  frame.SerializeToString(&bytes_);
  if (!compressor_.compress(bytes_, rate, compressed_.mutable_compressed(), compressed_.mutable_compression())) {
    return frame;
  }
  return compressed_;
}

const v1::Frame& FrameEncoder::shorten(const v1::Frame& frame) {
  if (options_.max_templates == 0) return frame;
  compact_.Clear();
  plain_.clear();
  bool same = true;  // all instructions are plain
  uint64_t next = frame.instructions_size() == 0 ? 0 : frame.instructions(0).result();
  compact_.set_next_name(next);
  for (int i = 0; i < frame.instructions_size(); ++i) {
    const v1::Instruction& instruction = frame.instructions(i);
    const uint64_t code = describe(instruction, next) ? code_of_described() : layout::kPlain;
    compact_.add_layout(code);
    same = same && code == layout::kPlain;
    if (code < layout::kFirstTemplate) {
      plain_.push_back(i);
    } else {
      for (uint64_t operand : operands_) compact_.add_layout(operand);
    }
    next = layout::next_name(instruction, next);
  }
  if (same) return frame;
  shorten_layout();
  for (int i : plain_) *compact_.add_instructions() = frame.instructions(i);
  compact_.set_sequence(frame.sequence());
  compact_.set_received(frame.received());
  compact_.set_close(frame.close());
  if (!frame.traceparent().empty()) [[unlikely]]
    compact_.set_traceparent(frame.traceparent());
  *compact_.mutable_release() = frame.release();
  *compact_.mutable_reads() = frame.reads();
  *compact_.mutable_scalar_reads() = frame.scalar_reads();
  compact_.set_first_number(frame.first_number());
  *compact_.mutable_sites() = frame.sites();
  return compact_;
}

}  // namespace tt::client
