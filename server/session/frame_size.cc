#include "server/session/frame_size.h"

#include <algorithm>

#include "engine/schema/program.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "proto/wire.h"

namespace tt::server {
namespace {

using google::protobuf::io::CodedInputStream;
using WireFormat = google::protobuf::internal::WireFormatLite;

// Overhead per submessage: its pointer in a repeated field that has grown by doubling.
constexpr uint64_t kPointerBytes = 4 * sizeof(void*);
constexpr uint64_t kInstructionBytes = sizeof(v1::Instruction) + kPointerBytes + sizeof(tt::Instruction);
constexpr uint64_t kArgumentBytes = sizeof(v1::Argument) + kPointerBytes + sizeof(Arg);
constexpr uint64_t kListBytes = sizeof(v1::Integers) + 16;
constexpr uint64_t kReadBytes = sizeof(v1::Read) + kPointerBytes;
constexpr uint64_t kSizeBytes = sizeof(v1::SizeArgument) + kPointerBytes + 2 * sizeof(tt::SizeArgument);
constexpr uint64_t kSiteBytes = sizeof(v1::Site) + kPointerBytes + 2 * sizeof(std::string);
// Memory per number of a list. A list grows by doubling, in an arena that does not free the outgrown arrays.
constexpr uint64_t kNumberBytes = 5 * sizeof(uint64_t);  // includes the copy in the Program
// Memory of an unknown field, which protobuf keeps.
constexpr uint64_t kUnknownBytes = 64;

constexpr auto kVarint = WireFormat::WIRETYPE_VARINT;

class FrameMeasurer {
 public:
  FrameMeasurer(CodedInputStream& in, uint64_t max_bytes, FrameSize& size)
      : in_(in), max_bytes_(max_bytes), size_(size) {}

  bool frame() {
    return fields([this](int field, WireFormat::WireType type) {
      if (type != WireFormat::WIRETYPE_LENGTH_DELIMITED) {
        const bool is_single = field == v1::Frame::kSequenceFieldNumber || field == v1::Frame::kCloseFieldNumber ||
                               field == v1::Frame::kReceivedFieldNumber || field == v1::Frame::kNextNameFieldNumber ||
                               field == v1::Frame::kFirstNumberFieldNumber;
        return number(is_single && type == kVarint, type);
      }
      switch (field) {
        case v1::Frame::kInstructionsFieldNumber:
          ++size_.instructions;
          return count(kInstructionBytes) && nested([this] { return instruction(); });
        case v1::Frame::kReleaseFieldNumber: return bytes(3);
        case v1::Frame::kLayoutFieldNumber:
        case v1::Frame::kCopiesFieldNumber:
        case v1::Frame::kScalarReadsFieldNumber: return numbers();
        case v1::Frame::kCompressedFieldNumber: return bytes(2);
        case v1::Frame::kCompressionFieldNumber: return count(sizeof(v1::ChunkCompression) + kPointerBytes) && bytes(1);
        case v1::Frame::kReadsFieldNumber: ++size_.reads; return count(kReadBytes) && bytes(1);
        case v1::Frame::kSitesFieldNumber: return count(kSiteBytes) && bytes(2);
        case v1::Frame::kTraceparentFieldNumber: return bytes(2);
        case v1::Frame::kSizesFieldNumber: return count(kSizeBytes) && nested([this] { return size(); });
        default: return unknown();
      }
    });
  }

 private:
  bool count(uint64_t bytes) {
    size_.bytes += bytes;
    return size_.bytes <= max_bytes_;
  }

  template <typename Field>
  bool fields(Field field) {
    for (;;) {
      const uint32_t tag = in_.ReadTag();
      if (tag == 0) return in_.ConsumedEntireMessage();
      const int number = WireFormat::GetTagFieldNumber(tag);
      if (number == 0 || !field(number, WireFormat::GetTagWireType(tag))) return false;
    }
  }

  // Parses a submessage with `read`.
  template <typename Read>
  bool nested(Read read) {
    int length = 0;
    if (!in_.ReadVarintSizeAsInt(&length)) return false;
    const auto limit = in_.PushLimit(length);
    if (!read()) return false;
    in_.PopLimit(limit);
    return true;
  }

  // Skips a length-delimited field, and counts `times` its length as its memory.
  bool bytes(uint64_t times) {
    int length = 0;
    if (!in_.ReadVarintSizeAsInt(&length)) return false;
    return count(times * static_cast<uint64_t>(length)) && in_.Skip(length);
  }

  bool unknown() { return count(kUnknownBytes) && bytes(1); }

  // Skips a numeric field that is not packed. If it is not a known singular field (`in_message`), its memory is
  // counted. Rejects groups, which the protocol does not use.
  bool number(bool in_message, WireFormat::WireType type) {
    if (!in_message && !count(kUnknownBytes)) return false;
    uint64_t varint = 0;
    switch (type) {
      case WireFormat::WIRETYPE_VARINT: return in_.ReadVarint64(&varint);
      case WireFormat::WIRETYPE_FIXED64: return in_.Skip(8);
      case WireFormat::WIRETYPE_FIXED32: return in_.Skip(4);
      default: return false;
    }
  }

  // Skips a packed field of varints. Counts the varints by their last bytes.
  bool numbers() {
    int length = 0;
    if (!in_.ReadVarintSizeAsInt(&length)) return false;
    while (length > 0) {
      const void* data = nullptr;
      int there = 0;
      if (!in_.GetDirectBufferPointer(&data, &there)) return false;
      there = std::min(there, length);
      const auto* first = static_cast<const unsigned char*>(data);
      const auto ends = std::count_if(first, first + there, [](unsigned char byte) { return byte < 0x80; });
      if (!count(static_cast<uint64_t>(ends) * kNumberBytes) || !in_.Skip(there)) return false;
      length -= there;
    }
    return true;
  }

  bool instruction() {
    return fields([this](int field, WireFormat::WireType type) {
      if (type != WireFormat::WIRETYPE_LENGTH_DELIMITED) {
        const bool is_single =
            field <= v1::Instruction::kDefaultDtypeFieldNumber && field != v1::Instruction::kArgsFieldNumber &&
            field != v1::Instruction::kIntoFieldNumber && field != v1::Instruction::kReleaseFieldNumber;
        return number(is_single && type == kVarint, type);
      }
      switch (field) {
        case v1::Instruction::kArgsFieldNumber: return count(kArgumentBytes) && nested([this] { return argument(); });
        case v1::Instruction::kIntoFieldNumber: return numbers();
        case v1::Instruction::kReleaseFieldNumber: return bytes(3);
        default: return unknown();
      }
    });
  }

  bool size() {
    return fields([this](int field, WireFormat::WireType type) {
      if (type != WireFormat::WIRETYPE_LENGTH_DELIMITED)
        return number(field < v1::SizeArgument::kTermsFieldNumber && type == kVarint, type);
      return field == v1::SizeArgument::kTermsFieldNumber ? numbers() : unknown();
    });
  }

  bool argument() {
    return fields([this](int field, WireFormat::WireType type) {
      if (type != WireFormat::WIRETYPE_LENGTH_DELIMITED) return number(is_value(field, type), type);
      switch (field) {
        case v1::Argument::kHandlesFieldNumber:
        case v1::Argument::kIntegersFieldNumber: return count(kListBytes) && nested([this] { return list(true); });
        case v1::Argument::kRealsFieldNumber: return count(kListBytes) && nested([this] { return list(false); });
        case v1::Argument::kCharactersFieldNumber: return count(2 * sizeof(std::string)) && bytes(2);
        case v1::Argument::kComplexFieldNumber: return count(sizeof(v1::Complex) + 16) && bytes(1);
        default: return unknown();
      }
    });
  }

  static bool is_value(int field, WireFormat::WireType type) {
    switch (field) {
      case v1::Argument::kNoneFieldNumber:
      case v1::Argument::kHandleFieldNumber:
      case v1::Argument::kBooleanFieldNumber:
      case v1::Argument::kIntegerFieldNumber:
      case v1::Argument::kNaturalFieldNumber: return type == kVarint;
      case v1::Argument::kRealFieldNumber: return type == WireFormat::WIRETYPE_FIXED64;
      default: return false;
    }
  }

  // Measures a Handles, Integers or Reals message.
  bool list(bool varints) {
    return fields([&, this](int field, WireFormat::WireType type) {
      if (type != WireFormat::WIRETYPE_LENGTH_DELIMITED) return number(false, type);
      if (field != 1) return unknown();
      return varints ? numbers() : bytes(3);
    });
  }

  CodedInputStream& in_;
  const uint64_t max_bytes_;
  FrameSize& size_;
};

}  // namespace

bool measure_frame(google::protobuf::io::ZeroCopyInputStream* stream, uint64_t max_bytes, FrameSize* size) {
  CodedInputStream in(stream);
  return FrameMeasurer(in, max_bytes, *size).frame();
}

}  // namespace tt::server
