#include "server/session/replies.h"

#include "engine/session/image.h"

namespace tt::server {
namespace {

// Memory of a ReadResult in addition to its encoded bytes.
constexpr uint64_t kAnswerBytes = sizeof(v1::ReadResult) + sizeof(v1::TensorDescription) + 128;

// Likewise of a NumberError.
constexpr uint64_t kErrorBytes = sizeof(v1::NumberError) + sizeof(v1::Error) + 64;

uint64_t memory_of(const v1::Reply& reply) {
  return reply.ByteSizeLong() + static_cast<uint64_t>(reply.reads_size()) * kAnswerBytes +
         static_cast<uint64_t>(reply.number_errors_size()) * kErrorBytes;
}

}  // namespace

void Replies::keep(uint64_t sequence, const v1::Reply& reply, uint64_t max_bytes) {
  if (reply.reads_size() == 0 && reply.numbers().empty()) return;
  const uint64_t bytes = memory_of(reply) + sizeof(Entry);
  while (bytes_ + bytes > max_bytes && without_reads_ < entries_.size()) drop_oldest_reads();
  while (bytes_ + bytes > max_bytes && !entries_.empty()) drop_oldest();
  if (bytes > max_bytes) return;
  bytes_ += bytes;
  entries_.push_back({sequence, bytes, reply});
}

void Replies::forget(uint64_t sequence) {
  while (!entries_.empty() && entries_.front().sequence <= sequence) drop_oldest();
}

Replies::Kept Replies::find(uint64_t sequence) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].sequence == sequence) return {&entries_[i].reply, i >= without_reads_};
  }
  return {};
}

void Replies::write_image(ImageOutput* out) const {
  out->number(without_reads_);
  out->number(entries_.size());
  for (const Entry& entry : entries_) {
    out->number(entry.sequence);
    out->text(entry.reply.SerializeAsString());
  }
}

void Replies::read_image(ImageInput* in) {
  const uint64_t without_reads = in->number();
  for (size_t count = in->count(); count > 0; --count) {
    Entry& entry = entries_.emplace_back();
    entry.sequence = in->number();
    const std::string_view bytes = in->view();
    check(entry.reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())), "[image] expected a reply");
    entry.bytes = memory_of(entry.reply) + sizeof(Entry);
    bytes_ += entry.bytes;
  }
  check(without_reads <= entries_.size(), "[image] expected fewer replies without reads");
  without_reads_ = without_reads;
}

void Replies::clear() {
  entries_.clear();
  bytes_ = 0;
  without_reads_ = 0;
}

void Replies::drop_oldest_reads() {
  Entry& entry = entries_[without_reads_++];
  bytes_ -= entry.bytes;
  google::protobuf::RepeatedPtrField<v1::ReadResult>().Swap(entry.reply.mutable_reads());
  entry.bytes = memory_of(entry.reply) + sizeof(Entry);
  bytes_ += entry.bytes;
}

void Replies::drop_oldest() {
  bytes_ -= entries_.front().bytes;
  if (without_reads_ > 0) --without_reads_;
  entries_.pop_front();
}

}  // namespace tt::server
