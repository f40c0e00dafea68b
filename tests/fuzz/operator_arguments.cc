#include "tests/fuzz/operator_arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "engine/schema/error.h"
#include "tests/fuzz/typical_calls.h"

namespace tt::fuzz {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

constexpr int64_t kExtremeInts[] = {kMin,
                                    kMin + 1,
                                    kMin / 2,
                                    -(int64_t{1} << 32),
                                    std::numeric_limits<int32_t>::min(),
                                    -129,
                                    -65,
                                    63,
                                    64,
                                    65,
                                    255,
                                    4096,
                                    (1 << 28) - 1,
                                    std::numeric_limits<int32_t>::max(),
                                    int64_t{1} << 31,
                                    int64_t{1} << 32,
                                    int64_t{1} << 40,
                                    (int64_t{1} << 53) + 1,
                                    int64_t{1} << 61,
                                    int64_t{1} << 62,
                                    kMax / 2,
                                    kMax - 1,
                                    kMax};

constexpr int64_t kLargeSizes[] = {63,
                                   64,
                                   65,
                                   4096,
                                   (1 << 28) - 1,
                                   std::numeric_limits<int32_t>::max(),
                                   int64_t{1} << 31,
                                   int64_t{1} << 40,
                                   int64_t{1} << 59,
                                   int64_t{1} << 62,
                                   kMax};

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kExtremeFloats[] = {0.0,
                                     -0.0,
                                     kInf,
                                     -kInf,
                                     std::numeric_limits<double>::quiet_NaN(),
                                     std::numeric_limits<double>::max(),
                                     std::numeric_limits<double>::lowest(),
                                     std::numeric_limits<double>::min(),
                                     std::numeric_limits<double>::denorm_min(),
                                     0x1p31,
                                     0x1p62,
                                     0x1p63,
                                     -0x1p63,
                                     0x1p64,
                                     1e-300,
                                     -1e30};
constexpr double kUsualFloats[] = {0.5, 1.0, 2.0, 0.1, -1.0, 3.0, 1e-5, 0.9};

// Strings that operators accept, and strings that none accepts.
constexpr std::string_view kWords[] = {"none",
                                       "mean",
                                       "sum",
                                       "batchmean",
                                       "prod",
                                       "amax",
                                       "amin",
                                       "linear",
                                       "lower",
                                       "higher",
                                       "midpoint",
                                       "nearest",
                                       "nearest-exact",
                                       "area",
                                       "bilinear",
                                       "bicubic",
                                       "trilinear",
                                       "zeros",
                                       "border",
                                       "reflection",
                                       "reduced",
                                       "complete",
                                       "r",
                                       "L",
                                       "U",
                                       "fro",
                                       "nuc",
                                       "tanh",
                                       "relu",
                                       "trunc",
                                       "floor",
                                       "highest",
                                       "high",
                                       "medium",
                                       "use_mm_for_euclid_dist",
                                       "donot_use_mm_for_euclid_dist",
                                       "",
                                       "\xff\xfe",
                                       "no such word"};

bool fits(int64_t elements, int64_t size, int64_t limit) { return size <= 1 || elements <= limit / size; }

}  // namespace

uint64_t ByteReader::word() {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | byte();
  return value;
}

const Op& draw_op(ByteReader& bytes) {
  auto ops = all_ops();
  const size_t high = bytes.byte(), low = bytes.byte();
  return *ops[(high * 256 + low) % ops.size()];
}

OperatorArguments::OperatorArguments(const Op& op, ByteReader& bytes, const TensorLimits& limits,
                                     MakeTensor make_tensor)
    : op_(op), bytes_(bytes), limits_(limits), make_tensor_(std::move(make_tensor)) {
  if (bytes_.one_in(3)) common_dtype_ = draw_dtype();
  const std::string_view typical = typical_call(op.name);
  if (!typical.empty() && !bytes_.one_in(4)) {
    mutate_typical_call(typical);
  } else {
    for (const Param& param : op.params) args_.push_back(draw(param));
  }
  if (bytes_.one_in(256)) args_.emplace_back(int64_t{1});  // one more than the operator accepts
}

// First draws the amount of change: none, little, or most arguments.
void OperatorArguments::mutate_typical_call(std::string_view typical) {
  constexpr size_t kOneIn[] = {250, 16, 6, 3};
  change_ = bytes_.pick(kOneIn);
  for (const Param& param : op_.params) {
    const bool given = !typical.empty();
    Arg arg = given ? read(&typical) : param.default_value;
    if (bytes_.one_in(change_ * 2)) arg = draw(param);
    args_.push_back(arg);
  }
}

Sizes OperatorArguments::read_ints(std::string_view* text) {
  Sizes list;
  text->remove_prefix(1);  // the bracket
  while (text->front() != ']') {
    int64_t value = 0;
    const auto end = std::from_chars(text->data(), text->data() + text->size(), value).ptr;
    text->remove_prefix(static_cast<size_t>(end - text->data()));
    if (text->front() == ',') text->remove_prefix(1);
    list.push_back(bytes_.one_in(change_ * 2) ? draw_int() : value);
  }
  text->remove_prefix(1);
  return list;
}

Arg OperatorArguments::read_tensor(char type, Sizes sizes) {
  TensorMeta meta;
  meta.dtype = type == 'l'   ? DType::kInt64
               : type == 'i' ? DType::kInt32
               : type == 'b' ? DType::kBool
               : type == 'c' ? DType::kComplex64
               : type == 'e' ? DType::kFloat8E4m3fn
               : type == 's' ? DType::kFloat32
                             : common_dtype_;
  if (bytes_.one_in(change_ * 4)) meta.dtype = draw_dtype();
  meta.requires_grad = has_gradients(meta.dtype) && bytes_.one_in(3);
  meta.sizes = std::move(sizes);
  for (int64_t& size : meta.sizes) size = std::max<int64_t>(size, 0);
  if (bytes_.one_in(change_)) vary(&meta.sizes);
  bound(&meta);
  return keep(std::move(meta));
}

Arg OperatorArguments::read(std::string_view* text) {
  const auto skip = [&](size_t n) {
    text->remove_prefix(n);
    while (!text->empty() && text->front() == ' ') text->remove_prefix(1);
  };
  const char first = text->front();
  const bool bracket = text->size() > 1 && (*text)[1] == '[';
  if (first == '(') {
    std::vector<const TensorMeta*>& list = lists_.emplace_back();
    skip(1);
    while (text->front() != ')') {
      const Arg entry = read(text);
      if (!bytes_.one_in(change_ * 4)) list.push_back(entry.is_none() ? nullptr : entry.tensor);
    }
    skip(1);
    return Arg(absl::Span<const TensorMeta* const>(list));
  }
  if (first == '[') {
    const size_t end = text->substr(0, text->find(']')).find('.') == std::string_view::npos ? 0 : text->find(']');
    if (end > 0) {
      skip(end + 1);
      return draw_floats();
    }
    Sizes& list = ints_.emplace_back(read_ints(text));
    skip(0);
    return Arg(SizesView(list));
  }
  if (bracket) {
    text->remove_prefix(1);
    Sizes sizes = read_ints(text);
    skip(0);
    return read_tensor(first, std::move(sizes));
  }
  const std::string_view word = text->substr(0, text->find_first_of(" )"));
  skip(word.size());
  if (word == "-") return Arg();
  if (word == "T" || word == "F") return Arg((word == "T") != bytes_.one_in(4));
  if (first == '\'') return Arg(word.substr(1, word.size() - 2));
  if (word.find('.') != std::string_view::npos) {
    double value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return bytes_.one_in(change_) ? Arg(draw_float()) : Arg(value);
  }
  int64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return bytes_.one_in(change_) ? Arg(draw_int()) : Arg(value);
}

Arg OperatorArguments::draw(const Param& param) {
  const size_t way = bytes_.below(64);
  if (way == 63) return draw_of_type(static_cast<ParamType>(bytes_.below(11)), param);  // any type
  if (way == 62) return Arg();
  if (param.optional && way < 24) return Arg();
  if (param.has_default && way < 32) return param.default_value;
  if (param.accepts_number && way < 12) return draw_number();
  return draw_of_type(param.type, param);
}

Arg OperatorArguments::draw_of_type(ParamType type, const Param& param) {
  switch (type) {
    case ParamType::kTensor: return draw_tensor();
    case ParamType::kTensors: return draw_tensors(param);
    case ParamType::kScalar: return draw_number();
    case ParamType::kInt: return draw_int();
    case ParamType::kFloat: return bytes_.one_in(4) ? Arg(draw_int()) : Arg(draw_float());
    case ParamType::kBool: return bytes_.one_in(2);
    case ParamType::kInts: return draw_ints(param);
    case ParamType::kFloats: return draw_floats();
    case ParamType::kString: return draw_string();
    case ParamType::kDType: return bytes_.one_in(16) ? Arg(draw_int()) : Arg(draw_dtype());
    case ParamType::kDevice: {
      if (limits_.cpu_only) return Device{};
      constexpr Device kDevices[] = {{DeviceType::kCPU, 0}, {DeviceType::kCUDA, 0}, {DeviceType::kMeta, 0}};
      return bytes_.one_in(8) ? Arg(draw_int()) : Arg(bytes_.pick(kDevices));
    }
  }
  return Arg();
}

DType OperatorArguments::draw_dtype() { return static_cast<DType>(bytes_.below(kNumDTypes)); }

int64_t OperatorArguments::draw_int() {
  const size_t way = bytes_.below(16);
  if (way < 9) return static_cast<int64_t>(bytes_.below(8)) - 2;
  if (way < 13) return bytes_.pick(kExtremeInts);
  if (way == 13) return static_cast<int64_t>(bytes_.word());
  if (!shapes_.empty() && !shapes_[0].empty()) {  // a size of a tensor, or half of it
    const Sizes& sizes = shapes_[bytes_.below(shapes_.size())];
    if (!sizes.empty()) return sizes[bytes_.below(sizes.size())] / (way == 15 ? 2 : 1);
  }
  return 1;
}

int64_t OperatorArguments::draw_size() {
  const size_t way = bytes_.below(32);
  if (way < 28) return static_cast<int64_t>(way / 4);
  if (way < 30 || !limits_.extreme) return static_cast<int64_t>(bytes_.below(20));
  return bytes_.pick(kLargeSizes);
}

double OperatorArguments::draw_float() {
  const size_t way = bytes_.below(8);
  if (way < 4) return bytes_.pick(kUsualFloats);
  if (way < 7) return bytes_.pick(kExtremeFloats);
  double value = 0;
  const uint64_t bits = bytes_.word();
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

Arg OperatorArguments::draw_number() {
  switch (bytes_.below(8)) {
    case 0: return bytes_.one_in(2);
    case 1: return Arg(Scalar::of_unsigned(bytes_.word() | uint64_t{1} << 63));
    case 2: return std::complex<double>(draw_float(), draw_float());
    case 3:
    case 4: return draw_float();
    default: return draw_int();
  }
}

// Usually as many dimensions as most operators accept, one more or fewer; sometimes the maximum.
Sizes OperatorArguments::draw_sizes() {
  size_t dims = bytes_.below(6);
  if (bytes_.one_in(32)) dims = kMaxDims - bytes_.below(3);
  Sizes sizes;
  for (size_t d = 0; d < dims; ++d) sizes.push_back(dims > 8 && !bytes_.one_in(4) ? 1 : draw_size());
  return sizes;
}

void OperatorArguments::vary(Sizes* sizes) {
  const size_t d = sizes->empty() ? 0 : bytes_.below(sizes->size());
  switch (bytes_.below(6)) {
    case 0:
      if (!sizes->empty()) (*sizes)[d] = draw_size();
      break;
    case 1:
      if (!sizes->empty()) (*sizes)[d] = 1;
      break;
    case 2:
      if (!sizes->empty()) sizes->erase(sizes->begin() + static_cast<std::ptrdiff_t>(d));
      break;
    case 3:
      if (sizes->size() < kMaxDims) sizes->insert(sizes->begin() + static_cast<std::ptrdiff_t>(d), draw_size());
      break;
    case 4:
      if (sizes->size() > 1) std::swap(sizes->front(), sizes->back());
      break;
    default: break;
  }
}

// Contiguous, or strides in another order, zero strides, or any strides of a view.
void OperatorArguments::lay_out(TensorMeta* meta) {
  meta->strides = contiguous_strides(meta->sizes);
  const size_t way = bytes_.below(8);
  if (meta->sizes.empty() || way < 5) return;
  if (way == 5) {
    std::swap(meta->sizes.front(), meta->sizes.back());
    std::swap(meta->strides.front(), meta->strides.back());
    return;
  }
  if (way == 6) {
    meta->strides[bytes_.below(meta->strides.size())] = 0;
    return;
  }
  // Limits the view to a storage of this many elements.
  int64_t room = limits_.extreme ? (kMax >> 4) : 4 * limits_.max_elements;
  meta->offset = bytes_.one_in(4) ? room / 2 : static_cast<int64_t>(bytes_.below(4));
  room -= meta->offset + 1;
  for (size_t d = 0; d < meta->sizes.size(); ++d) {
    const int64_t steps = meta->sizes[d] - 1;
    int64_t most = steps > 0 ? room / steps : (kMax >> 4);
    if (!bytes_.one_in(8)) most = std::min<int64_t>(most, 9);
    meta->strides[d] = static_cast<int64_t>(bytes_.word() % static_cast<uint64_t>(most + 1));
    if (steps > 0) room -= steps * meta->strides[d];
  }
}

TensorMeta OperatorArguments::draw_meta() {
  TensorMeta meta;
  meta.dtype = bytes_.one_in(4) ? draw_dtype() : common_dtype_;
  if (!limits_.cpu_only && bytes_.one_in(32)) meta.device.type = DeviceType::kMeta;
  meta.requires_grad = has_gradients(meta.dtype) && bytes_.one_in(8);
  if (!shapes_.empty() && !bytes_.one_in(3)) {
    meta.sizes = shapes_[bytes_.below(shapes_.size())];
    if (bytes_.one_in(2)) vary(&meta.sizes);
  } else {
    meta.sizes = draw_sizes();
  }
  bound(&meta);
  return meta;
}

// Bounds the sizes to values that can exist, as infer() refuses larger ones at creation, and sets strides.
void OperatorArguments::bound(TensorMeta* meta_to_bound) {
  TensorMeta& meta = *meta_to_bound;
  const int64_t limit = limits_.extreme ? kMax / static_cast<int64_t>(item_size(meta.dtype)) : limits_.max_elements;
  int64_t elements = 1;
  for (int64_t& size : meta.sizes) {
    if (!fits(elements, size, limit)) size = 1;
    elements *= std::max<int64_t>(size, 1);
  }
  lay_out(&meta);
}

Arg OperatorArguments::keep(TensorMeta meta) {
  shapes_.push_back(meta.sizes);
  if (make_tensor_) return Arg(make_tensor_(meta));
  return Arg(&metas_.emplace_back(std::move(meta)));
}

Arg OperatorArguments::draw_tensor() { return keep(draw_meta()); }

Arg OperatorArguments::draw_tensors(const Param& param) {
  std::vector<const TensorMeta*>& list = lists_.emplace_back();
  const size_t count = bytes_.below(bytes_.one_in(16) ? 80 : 5);
  for (size_t i = 0; i < count; ++i) {
    if (param.optional_entries ? bytes_.one_in(3) : bytes_.one_in(64)) {
      list.push_back(nullptr);
    } else if (i > 0 && list[0] && bytes_.one_in(2)) {
      list.push_back(list[0]);
    } else {
      list.push_back(draw_tensor().tensor);
    }
  }
  return Arg(absl::Span<const TensorMeta* const>(list));
}

Arg OperatorArguments::draw_ints(const Param& param) {
  Sizes& list = ints_.emplace_back();
  const size_t way = bytes_.below(8);
  if (way == 0 && !shapes_.empty()) {
    list = shapes_[bytes_.below(shapes_.size())];
    if (bytes_.one_in(2)) vary(&list);
    return Arg(SizesView(list));
  }
  size_t count = way < 5 && param.list_size > 0 ? static_cast<size_t>(param.list_size) : bytes_.below(6);
  if (bytes_.one_in(32)) count = 60 + bytes_.below(12);
  const bool extreme = bytes_.one_in(3);
  for (size_t i = 0; i < count; ++i)
    list.push_back(extreme ? draw_int() : static_cast<int64_t>(bytes_.below(6)) - (way < 6 ? 0 : 2));
  return Arg(SizesView(list));
}

Arg OperatorArguments::draw_floats() {
  std::vector<double>& list = floats_.emplace_back();
  const size_t count = bytes_.below(5);
  for (size_t i = 0; i < count; ++i) list.push_back(draw_float());
  return Arg(absl::Span<const double>(list));
}

Arg OperatorArguments::draw_string() {
  if (!bytes_.one_in(8)) return Arg(bytes_.pick(kWords));
  std::string& text = strings_.emplace_back();
  const size_t count = bytes_.below(33);
  for (size_t i = 0; i < count; ++i) text.push_back(static_cast<char>(bytes_.byte()));
  return Arg(std::string_view(text));
}

namespace {

std::string describe_all(const TensorMeta* meta) {
  if (!meta) return "None";
  return absl::StrCat(describe(*meta), meta->is_contiguous() && meta->offset == 0
                                           ? std::string()
                                           : absl::StrCat("{strides ", tt::to_string(SizesView(meta->strides)),
                                                          ", offset ", meta->offset, "}"));
}

std::string describe(const Arg& arg) {
  using Kind = Arg::Kind;
  switch (arg.kind) {
    case Kind::kNone: return "None";
    case Kind::kTensor: return describe_all(arg.tensor);
    case Kind::kTensors: {
      std::string text = "(";
      for (const TensorMeta* t : arg.list()) absl::StrAppend(&text, text.size() > 1 ? ", " : "", describe_all(t));
      return text + ")";
    }
    case Kind::kInts: return tt::to_string(arg.ints());
    case Kind::kFloats: {
      std::string text = "[";
      for (double v : arg.floats()) absl::StrAppend(&text, text.size() > 1 ? ", " : "", v);
      return text + "]";
    }
    case Kind::kString: return absl::StrCat("'", absl::CHexEscape(message_part(arg.string())), "'");
    default: return arg.scalar().to_string();
  }
}

}  // namespace

std::string OperatorArguments::to_string() const {
  std::string text(op_.name);
  text += "(";
  for (size_t i = 0; i < args_.size(); ++i) absl::StrAppend(&text, i > 0 ? ", " : "", describe(args_[i]));
  return text + ")";
}

}  // namespace tt::fuzz
