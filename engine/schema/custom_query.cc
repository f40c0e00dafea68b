#include "engine/schema/custom_query.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/schema/error.h"

namespace tt {
namespace {

constexpr size_t kMaxListLength = 1 << 16;

void add_meta(const TensorMeta* meta, std::vector<int64_t>* numbers) {
  if (meta == nullptr) return numbers->push_back(-1);
  numbers->push_back(meta->dim());
  numbers->push_back(static_cast<int64_t>(meta->dtype));
  numbers->push_back(meta->device.encode());
  numbers->insert(numbers->end(), meta->sizes.begin(), meta->sizes.end());
  numbers->insert(numbers->end(), meta->strides.begin(), meta->strides.end());
}

// Reads numbers in order.
class Reader {
 public:
  explicit Reader(absl::Span<const int64_t> numbers) : numbers_(numbers) {}
  int64_t next() {
    require(at_ < numbers_.size());
    return numbers_[at_++];
  }
  size_t count(size_t limit) {
    const int64_t value = next();
    require(value >= 0 && static_cast<uint64_t>(value) <= limit);
    return static_cast<size_t>(value);
  }
  absl::Span<const int64_t> list(size_t count) {
    require(count <= numbers_.size() - at_);
    at_ += count;
    return numbers_.subspan(at_ - count, count);
  }
  bool at_end() const { return at_ == numbers_.size(); }
  static void require(bool ok) { check(ErrorKind::kValue, ok, "the question about a custom operator is malformed"); }

 private:
  const absl::Span<const int64_t> numbers_;
  size_t at_ = 0;
};

// A size of zero counts as one, because strides are products of the other sizes.
void require_sizes(absl::Span<const int64_t> sizes) {
  int64_t elements = 1;
  for (int64_t size : sizes)
    Reader::require(size >= 0 && !__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements));
}

bool read_meta(Reader& in, TensorMeta* meta) {
  const int64_t dim = in.next();
  if (dim == -1) return false;
  Reader::require(dim >= 0 && dim <= kMaxDims);
  const int64_t dtype = in.next();
  Reader::require(is_valid(dtype));
  meta->dtype = static_cast<DType>(dtype);
  meta->device = decode_device(in.next());
  const auto sizes = in.list(static_cast<size_t>(dim)), strides = in.list(static_cast<size_t>(dim));
  require_sizes(sizes);
  for (int64_t stride : strides) Reader::require(stride >= 0);
  meta->sizes.assign(sizes.begin(), sizes.end());
  meta->strides.assign(strides.begin(), strides.end());
  return true;
}

}  // namespace

std::vector<int64_t> encode_query(const Op& op, Args args) {
  std::vector<int64_t> numbers{op.id};
  for (const Arg& arg : args) {
    numbers.push_back(static_cast<int64_t>(arg.kind));
    switch (arg.kind) {
      case Arg::Kind::kNone: break;
      case Arg::Kind::kTensor: add_meta(arg.tensor, &numbers); break;
      case Arg::Kind::kTensors:
        numbers.push_back(arg.size);
        for (const TensorMeta* meta : arg.list()) add_meta(meta, &numbers);
        break;
      case Arg::Kind::kBool:
      case Arg::Kind::kInt: numbers.push_back(arg.integer); break;
      case Arg::Kind::kFloat: numbers.push_back(std::bit_cast<int64_t>(arg.real)); break;
      case Arg::Kind::kComplex:
        numbers.push_back(std::bit_cast<int64_t>(arg.real));
        numbers.push_back(std::bit_cast<int64_t>(arg.imaginary));
        break;
      case Arg::Kind::kInts:
        numbers.push_back(arg.size);
        numbers.insert(numbers.end(), arg.ints().begin(), arg.ints().end());
        break;
      case Arg::Kind::kFloats:
        numbers.push_back(arg.size);
        for (double value : arg.floats()) numbers.push_back(std::bit_cast<int64_t>(value));
        break;
      case Arg::Kind::kString:
        numbers.push_back(arg.size);
        for (char c : arg.string()) numbers.push_back(static_cast<unsigned char>(c));
        break;
      case Arg::Kind::kSlot:
      case Arg::Kind::kSlots: fail(ErrorKind::kValue, "[", op.name, "] expected values, got names of a Program");
    }
  }
  return numbers;
}

Query::Query(absl::Span<const int64_t> numbers) {
  Reader in(numbers);
  const int64_t id = in.next();
  op_ = id >= 0 && id <= UINT16_MAX ? find_op(static_cast<uint16_t>(id)) : nullptr;
  check(ErrorKind::kValue, op_ != nullptr, "expected the number of a custom operator, got ", id);
  for (size_t i = 0; i < op_->params.size(); ++i) {
    const size_t kind = in.count(static_cast<size_t>(Arg::Kind::kSlots));
    switch (static_cast<Arg::Kind>(kind)) {
      case Arg::Kind::kNone: args_.emplace_back(); break;
      case Arg::Kind::kTensor: {
        TensorMeta& meta = metas_.emplace_back();
        Reader::require(read_meta(in, &meta));
        args_.emplace_back(&meta);
        break;
      }
      case Arg::Kind::kTensors: {
        const size_t count = in.count(kMaxListLength);
        auto& list = lists_.emplace_back();
        for (size_t k = 0; k < count; ++k) {
          TensorMeta meta;
          const bool is_present = read_meta(in, &meta);
          list.push_back(is_present ? &metas_.emplace_back(std::move(meta)) : nullptr);
        }
        args_.emplace_back(absl::MakeConstSpan(list));
        break;
      }
      case Arg::Kind::kBool: args_.emplace_back(in.next() != 0); break;
      case Arg::Kind::kInt: args_.emplace_back(in.next()); break;
      case Arg::Kind::kFloat: args_.emplace_back(std::bit_cast<double>(in.next())); break;
      case Arg::Kind::kComplex: {
        const double real = std::bit_cast<double>(in.next());
        args_.emplace_back(std::complex<double>(real, std::bit_cast<double>(in.next())));
        break;
      }
      case Arg::Kind::kInts: {
        const auto list = in.list(in.count(kMaxListLength));
        args_.emplace_back(absl::MakeConstSpan(integers_.emplace_back(list.begin(), list.end())));
        break;
      }
      case Arg::Kind::kFloats: {
        auto& list = reals_.emplace_back();
        for (int64_t value : in.list(in.count(kMaxListLength))) list.push_back(std::bit_cast<double>(value));
        args_.emplace_back(absl::MakeConstSpan(list));
        break;
      }
      case Arg::Kind::kString: {
        std::string& text = texts_.emplace_back();
        for (int64_t value : in.list(in.count(kMaxListLength))) text += static_cast<char>(value);
        args_.emplace_back(std::string_view(text));
        break;
      }
      default: Reader::require(false);
    }
  }
  Reader::require(in.at_end());
  op_->check_args(args_);
}

std::string encode_results(absl::Span<const TensorMeta> results) {
  std::vector<int64_t> numbers{static_cast<int64_t>(results.size())};
  for (const TensorMeta& meta : results) {
    numbers.push_back(meta.dim());
    numbers.push_back(static_cast<int64_t>(meta.dtype));
    numbers.insert(numbers.end(), meta.sizes.begin(), meta.sizes.end());
  }
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)};
}

std::vector<TensorMeta> decode_results(std::string_view bytes) {
  Reader::require(bytes.size() % sizeof(int64_t) == 0 && bytes.size() / sizeof(int64_t) <= kMaxListLength);
  std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  Reader in(numbers);
  const size_t count = in.count(64);
  std::vector<TensorMeta> results;
  for (size_t i = 0; i < count; ++i) {
    TensorMeta& meta = results.emplace_back();
    const size_t dim = in.count(kMaxDims);
    const int64_t dtype = in.next();
    Reader::require(is_valid(dtype));
    meta.dtype = static_cast<DType>(dtype);
    const auto sizes = in.list(dim);
    require_sizes(sizes);
    meta.sizes.assign(sizes.begin(), sizes.end());
    meta.strides = contiguous_strides(meta.sizes);
  }
  Reader::require(in.at_end());
  return results;
}

}  // namespace tt
