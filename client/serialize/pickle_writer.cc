#include <algorithm>
#include <cstring>

#include "client/serialize/pickle.h"

namespace teletensor::internal {
namespace {

constexpr int kMaxDepth = 90;  // below the reader's limit

const char* storage_name(Dtype dtype) {
  switch (dtype) {
    case kFloat: return "FloatStorage";
    case kDouble: return "DoubleStorage";
    case kHalf: return "HalfStorage";
    case kBFloat16: return "BFloat16Storage";
    case kLong: return "LongStorage";
    case kInt: return "IntStorage";
    case kShort: return "ShortStorage";
    case kChar: return "CharStorage";
    case kByte: return "ByteStorage";
    case kBool: return "BoolStorage";
    case kComplexFloat: return "ComplexFloatStorage";
    case kComplexDouble: return "ComplexDoubleStorage";
    default: throw NotImplementedError("[save] tensors of dtype " + std::string(tt::name(dtype)) + " in a .pt file");
  }
}

// Protocol 2, without a memo.
class Writer {
 public:
  explicit Writer(const std::function<StoredView(const Tensor&)>& place) : place_(place) {}

  std::string run(const Value& value) {
    out_ = "\x80\x02";
    write(value, 0);
    return std::move(out_) + ".";
  }

 private:
  template <typename T>
  void put(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void write_int(int64_t value) {
    if (value >= INT32_MIN && value <= INT32_MAX) {
      out_ += 'J';
      put(static_cast<int32_t>(value));
    } else {
      out_ += "\x8a\x08";
      put(value);
    }
  }
  void write_text(const std::string& text) {
    if (text.size() > UINT32_MAX) throw ValueError("[save] a string has more than 4 GiB");
    out_ += 'X';
    put(static_cast<uint32_t>(text.size()));
    out_ += text;
  }
  void write_ints(const std::vector<int64_t>& values) {
    out_ += '(';
    for (int64_t value : values) write_int(value);
    out_ += 't';
  }
  void write_tensor(const Tensor& tensor) {
    const StoredView view = place_(tensor);
    out_ += "ctorch._utils\n_rebuild_tensor_v2\n((";
    write_text("storage");
    out_ += std::string("ctorch\n") + storage_name(view.dtype) + "\n";
    write_text(view.key);
    write_text("cpu");
    write_int(view.numel);
    out_ += "tQ";
    write_int(view.offset);
    write_ints(view.sizes);
    write_ints(view.strides);
    out_ += view.requires_grad ? '\x88' : '\x89';
    out_ += "ccollections\nOrderedDict\n)RtR";
  }
  void write(const Value& value, int depth) {
    if (depth > kMaxDepth) throw ValueError("[save] the value is nested too deep");
    if (value.is_none()) {
      out_ += 'N';
    } else if (value.is_bool()) {
      out_ += value.to_bool() ? '\x88' : '\x89';
    } else if (value.is_int()) {
      write_int(value.to_int());
    } else if (value.is_double()) {
      const double number = value.to_double();
      char bytes[8];
      std::memcpy(bytes, &number, 8);
      std::reverse(bytes, bytes + 8);
      out_ += 'G';
      out_.append(bytes, 8);
    } else if (value.is_string()) {
      write_text(value.to_string());
    } else if (value.is_tensor()) {
      write_tensor(value.to_tensor());
    } else if (value.is_list()) {
      out_ += "](";
      for (const Value& item : value.to_list()) write(item, depth + 1);
      out_ += 'e';
    } else {
      out_ += "}(";
      for (const auto& [key, item] : value.to_dict()) {
        if (!key.is_string() && !key.is_int()) throw TypeError("[save] expected strings or integers as keys of a dict");
        write(key, depth + 1);
        write(item, depth + 1);
      }
      out_ += 'u';
    }
  }

  const std::function<StoredView(const Tensor&)>& place_;
  std::string out_;
};

}  // namespace

std::string write_pickle(const Value& value, const std::function<StoredView(const Tensor&)>& place) {
  return Writer(place).run(value);
}

}  // namespace teletensor::internal
