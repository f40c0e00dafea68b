#include "formats/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/schema/error.h"

namespace tt {
namespace {

constexpr std::pair<std::string_view, DType> kDTypes[] = {
    {"BOOL", DType::kBool},
    {"U8", DType::kUInt8},
    {"I8", DType::kInt8},
    {"I16", DType::kInt16},
    {"I32", DType::kInt32},
    {"I64", DType::kInt64},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16},
    {"F32", DType::kFloat32},
    {"F64", DType::kFloat64},
    {"C64", DType::kComplex64},
    {"C128", DType::kComplex128},
    {"U16", DType::kUInt16},
    {"U32", DType::kUInt32},
    {"U64", DType::kUInt64},
    {"F8_E4M3", DType::kFloat8E4m3fn},
    {"F8_E5M2", DType::kFloat8E5m2},
};

[[noreturn]] void malformed(std::string_view why) {
  fail(ErrorKind::kValue, "the safetensors header is malformed: ", why);
}

std::string_view shortened(std::string_view name) { return name.substr(0, 100); }

// Receives the header's tokens. Nothing in it is nested deeper than {name: {key: [numbers]}}, so deeper input fails at
// once, and the parser itself keeps one bit per level.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<StoredTensor> tensors;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a fraction"); }
  bool binary(binary_t&) override { return unexpected("bytes"); }

  bool number_unsigned(number_unsigned_t number) override {
    if (!in_list_) return unexpected("a number");
    if (list_.size() == SafetensorsHeader::kMaxDims) malformed("a list has more than 64 numbers");
    if (number > INT64_MAX) malformed("a number exceeds 63 bits");
    list_.push_back(static_cast<int64_t>(number));
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ != 2 || in_list_ || (!in_metadata_ && key_ != "dtype")) return unexpected("a string");
    if (in_metadata_) return true;
    const auto* found = std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](auto& d) { return d.first == value; });
    if (found == std::end(kDTypes)) malformed("unknown dtype '" + std::string(shortened(value)) + "'");
    dtype_ = found->second;
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ == 2 || in_list_) return unexpected("an object");
    ++depth_;
    dtype_.reset();
    shape_.reset();
    offsets_.reset();
    return true;
  }

  bool key(string_t& key) override {
    if (depth_ == 1) {
      in_metadata_ = key == "__metadata__";
      if (in_metadata_ && std::exchange(has_metadata_, true)) malformed("__metadata__ occurs twice");
      name_ = std::move(key);
      return true;
    }
    key_ = std::move(key);
    if (in_metadata_) return true;
    const bool again = key_ == "dtype"   ? dtype_.has_value()
                       : key_ == "shape" ? shape_.has_value()
                                         : key_ == "data_offsets" && offsets_.has_value();
    if (again) malformed(key_ + " occurs twice for '" + std::string(shortened(name_)) + "'");
    if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
      malformed("unknown key '" + std::string(shortened(key_)) + "'");
    }
    return true;
  }

  bool end_object() override {
    if (--depth_ == 1 && !in_metadata_) add_tensor();
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || in_list_ || key_ == "dtype") return unexpected("a list");
    in_list_ = true;
    list_.clear();
    return true;
  }

  bool end_array() override {
    in_list_ = false;
    (key_ == "shape" ? shape_ : offsets_) = list_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    malformed("invalid JSON at byte " + std::to_string(position));
  }

 private:
  static bool unexpected(std::string_view token) {
    malformed("expected tensors with dtype, shape and data_offsets, got " + std::string(token));
  }

  void add_tensor() {
    const std::string name(shortened(name_));
    if (!dtype_ || !shape_ || !offsets_) malformed("'" + name + "' lacks dtype, shape or data_offsets");
    if (offsets_->size() != 2 || (*offsets_)[0] > (*offsets_)[1]) malformed("the offsets of '" + name + "'");
    StoredTensor tensor;
    tensor.dtype = *dtype_;
    tensor.begin = static_cast<uint64_t>((*offsets_)[0]);
    tensor.bytes = static_cast<uint64_t>((*offsets_)[1]) - tensor.begin;
    uint64_t bytes = item_size(tensor.dtype);
    bool is_empty = false;
    for (const int64_t size : *shape_) {
      is_empty |= size == 0;
      // Sizes other than 0 must not overflow even if the tensor is empty, because strides are computed from them.
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(std::max<int64_t>(size, 1)), &bytes) ||
          bytes > INT64_MAX) {
        malformed("the shape of '" + name + "' is too large");
      }
      tensor.sizes.push_back(size);
    }
    if (tensor.bytes != (is_empty ? 0 : bytes)) malformed("the offsets of '" + name + "' do not fit its shape");
    tensor.name = std::move(name_);
    tensors.push_back(std::move(tensor));
  }

  int depth_ = 0;
  bool in_metadata_ = false, has_metadata_ = false, in_list_ = false;
  std::string name_, key_;
  std::vector<int64_t> list_;
  std::optional<DType> dtype_;
  std::optional<std::vector<int64_t>> shape_, offsets_;
};

// Receives the tokens of a list of strings.
class StringListHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<std::string> strings;

  bool null() override { return unexpected(); }
  bool boolean(bool) override { return unexpected(); }
  bool number_integer(number_integer_t) override { return unexpected(); }
  bool number_unsigned(number_unsigned_t) override { return unexpected(); }
  bool number_float(number_float_t, const string_t&) override { return unexpected(); }
  bool binary(binary_t&) override { return unexpected(); }
  bool start_object(std::size_t) override { return unexpected(); }
  bool key(string_t&) override { return unexpected(); }
  bool end_object() override { return unexpected(); }
  bool start_array(std::size_t) override { return !std::exchange(in_list_, true) || unexpected(); }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return unexpected();
  }
  bool string(string_t& value) override {
    if (!in_list_) return unexpected();
    strings.push_back(std::move(value));
    return true;
  }

 private:
  static bool unexpected() { fail(ErrorKind::kValue, "expected a JSON list of strings in `names`"); }

  bool in_list_ = false;
};

}  // namespace

std::string json_name(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    fail(ErrorKind::kValue, "expected text in UTF-8, got other bytes");
  }
}

std::vector<std::string> parse_string_list(std::string_view text) {
  StringListHandler handler;
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  return std::move(handler.strings);
}

std::string_view safetensors_name(DType dtype) {
  const auto* found = std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](auto& d) { return d.second == dtype; });
  check(found != std::end(kDTypes), "safetensors files have no dtype ", dtype);
  return found->first;
}

SafetensorsHeader SafetensorsHeader::parse(std::string_view text, uint64_t data_bytes) {
  if (text.size() > kMaxBytes) malformed("it has more than 100000000 bytes");
  if (text.empty() || text.front() != '{') malformed("it does not begin with '{'");
  HeaderHandler handler;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &handler)) malformed("invalid JSON");
  SafetensorsHeader header;
  header.tensors_ = std::move(handler.tensors);
  std::stable_sort(header.tensors_.begin(), header.tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
  });
  uint64_t end = 0;
  header.by_name_.reserve(header.tensors_.size());
  for (size_t i = 0; i < header.tensors_.size(); ++i) {
    const StoredTensor& tensor = header.tensors_[i];
    const std::string name(shortened(tensor.name));
    if (!header.by_name_.emplace(tensor.name, i).second) malformed("'" + name + "' occurs twice");
    if (tensor.begin < end) malformed("the bytes of '" + name + "' overlap those of another tensor");
    if (tensor.begin > end) malformed("there are unused bytes before '" + name + "'");
    end += tensor.bytes;
    if (end > data_bytes) malformed("the bytes of '" + name + "' are beyond the end of the file");
  }
  if (end != data_bytes) malformed("there are unused bytes at the end of the file");
  return header;
}

const StoredTensor& SafetensorsHeader::find(std::string_view name) const {
  auto found = by_name_.find(message_part(name));
  check(ErrorKind::kValue, found != by_name_.end(), "the file has no tensor '", shortened(name), "'");
  return tensors_[found->second];
}

uint64_t file_size(int file, std::string_view path) {
  struct stat status {};
  check(fstat(file, &status) == 0, "cannot read '", path, "': ", std::strerror(errno));
  return static_cast<uint64_t>(status.st_size);
}

void read_exactly(int file, void* into, size_t size, uint64_t offset, std::string_view path) {
  char* to = static_cast<char*>(into);
  while (size != 0) {
    const ssize_t got = pread(file, to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    check(got >= 0, "cannot read '", path, "': ", std::strerror(errno));
    check(got != 0, "cannot read '", path, "': the file is incomplete");
    to += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
}

SafetensorsFile read_safetensors_header(int file, std::string_view path) {
  const uint64_t size = file_size(file, path);
  check(ErrorKind::kValue, size >= 8, "'", path, "' is not a safetensors file: it has ", size, " bytes");
  std::array<uint8_t, 8> prefix{};
  read_exactly(file, prefix.data(), prefix.size(), 0, path);
  uint64_t length = 0;
  for (size_t i = prefix.size(); i-- > 0;) length = length << 8 | prefix[i];
  check(ErrorKind::kValue, length <= SafetensorsHeader::kMaxBytes && length <= size - 8, "'", path,
        "' is not a safetensors file: its header would have ", length, " bytes of ", size);
  SafetensorsFile result;
  result.text.resize(length);
  read_exactly(file, result.text.data(), length, 8, path);
  result.data_offset = 8 + length;
  result.data_bytes = size - result.data_offset;
  return result;
}

}  // namespace tt
