#include "server/serving/classification.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text.h"
#include "engine/schema/error.h"
#include "server/serving/byte_strings.h"
#include "server/serving/served_model.h"

namespace tt::server {
namespace {

// The rows of an output, and the values of each.
std::pair<uint64_t, uint64_t> rows_and_values(SizesView sizes, bool is_batched) {
  uint64_t rows = 1, values = 1;
  for (size_t i = 0; i < sizes.size(); ++i) (i == 0 && is_batched ? rows : values) *= static_cast<uint64_t>(sizes[i]);
  return {rows, values};
}

Sizes sizes_of(uint64_t rows, bool is_batched, uint64_t classes) {
  Sizes sizes;
  if (is_batched) sizes.push_back(static_cast<int64_t>(rows));
  sizes.push_back(static_cast<int64_t>(classes));
  return sizes;
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// Calls a function now and then.
class Checks {
 public:
  explicit Checks(absl::FunctionRef<absl::Status(uint64_t bytes)> check) : check_(check) {}
  // After work of `steps`, about as many values.
  absl::Status advance(uint64_t steps, const std::string& encoded) {
    constexpr uint64_t kSteps = 65'536;
    steps_ += steps;
    if (steps_ < kSteps) return absl::OkStatus();
    steps_ = 0;
    return check_(encoded.size());
  }

 private:
  const absl::FunctionRef<absl::Status(uint64_t bytes)> check_;
  uint64_t steps_ = 0;
};

// Appends the classes of one row. `order` is memory for them.
template <typename T>
absl::Status append_classes(const char* bytes, uint64_t count, uint64_t classes, const ClassLabels& labels,
                            Checks* checks, std::vector<std::pair<T, uint64_t>>* order, std::string* encoded) {
  constexpr uint64_t kStepsOfClass = 64;
  const auto precedes = [](const auto& a, const auto& b) {
    if (is_nan(a.first) || is_nan(b.first)) {
      if (is_nan(a.first) != is_nan(b.first)) return is_nan(b.first);
    } else if (a.first != b.first) {
      return a.first > b.first;
    }
    return a.second < b.second;
  };
  // A heap of the best ones so far, the worst of them first: memory for `classes` values, not for all.
  order->clear();
  for (uint64_t i = 0; i < count; ++i) {
    if (absl::Status status = checks->advance(1, *encoded); !status.ok()) return status;
    std::pair<T, uint64_t> each{T{}, i};
    std::memcpy(&each.first, bytes + i * sizeof(T), sizeof(T));
    if (order->size() == classes) {
      if (!precedes(each, order->front())) continue;
      std::pop_heap(order->begin(), order->end(), precedes);
      order->pop_back();
    }
    order->push_back(each);
    std::push_heap(order->begin(), order->end(), precedes);
  }
  std::sort_heap(order->begin(), order->end(), precedes);
  for (const auto& [value, index] : *order) {
    std::string text = absl::StrCat(std::to_string(value), ":", index);
    if (index < labels.of_index.size()) absl::StrAppend(&text, ":", labels.of_index[index]);
    append_string(text, encoded);
    if (absl::Status status = checks->advance(kStepsOfClass, *encoded); !status.ok()) return status;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status classify_as(uint64_t rows, uint64_t count, uint64_t classes, const ClassLabels& labels,
                         absl::string_view bytes, Checks* checks, std::string* encoded) {
  std::vector<std::pair<T, uint64_t>> order;
  order.reserve(classes);
  for (uint64_t row = 0; row < rows; ++row) {
    const char* values = bytes.data() + row * count * sizeof(T);
    absl::Status status = append_classes<T>(values, count, classes, labels, checks, &order, encoded);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The longest "value:index": std::to_string() of the largest double has 316 characters, of the largest float 47.
uint64_t longest_text(DType dtype) { return dtype == DType::kFloat64 ? 340 : 72; }

}  // namespace

ClassLabels read_labels(const std::filesystem::path& folder, const std::string& name) {
  check(ErrorKind::kValue, !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos,
        "[model] expected the name of a file in the model's folder as label_filename, got '", name.substr(0, 100), "'");
  std::string text = read_model_file(folder / name, kMaxLabelsBytes);
  check(ErrorKind::kValue, valid_utf8(text, text.size()) == text, "[model] expected UTF-8 in ", name);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  ClassLabels labels;
  if (text.empty()) return labels;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view label = absl::StripSuffix(line, "\r");
    check(ErrorKind::kValue, label.size() <= kMaxLabelBytes, "[model] expected labels of at most ", kMaxLabelBytes,
          " bytes in ", name, ", got ", label.size());
    labels.of_index.emplace_back(label);
    labels.longest = std::max<uint64_t>(labels.longest, label.size());
  }
  return labels;
}

bool has_classes(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
    case DType::kFloat32:
    case DType::kFloat64: return true;
    default: return false;
  }
}

ClassSizes class_sizes(DType dtype, SizesView sizes, bool is_batched, uint64_t classes, const ClassLabels& labels) {
  const auto [rows, values] = rows_and_values(sizes, is_batched);
  const uint64_t count = std::min(classes, values);
  return {sizes_of(rows, is_batched, count), rows * count * (longest_text(dtype) + labels.longest)};
}

absl::Status classify(uint64_t classes, bool is_batched, const ClassLabels& labels,
                      absl::FunctionRef<absl::Status(uint64_t bytes)> check, InferOutput* output) {
  const auto [rows, values] = rows_and_values(output->sizes, is_batched);
  const uint64_t count = std::min(classes, values);
  std::string encoded;
  Checks checks(check);
  absl::Status status;
  const auto run = [&](auto type) {
    status = classify_as<decltype(type)>(rows, values, count, labels, output->bytes(), &checks, &encoded);
  };
  switch (count == 0 ? DType::kBool : output->dtype) {
    case DType::kInt8: run(int8_t()); break;
    case DType::kInt16: run(int16_t()); break;
    case DType::kInt32: run(int32_t()); break;
    case DType::kInt64: run(int64_t()); break;
    case DType::kUInt8: run(uint8_t()); break;
    case DType::kUInt16: run(uint16_t()); break;
    case DType::kUInt32: run(uint32_t()); break;
    case DType::kUInt64: run(uint64_t()); break;
    case DType::kFloat32: run(float()); break;
    case DType::kFloat64: run(double()); break;
    default: break;  // there are no values
  }
  if (status.ok()) status = check(encoded.size());
  if (!status.ok()) return status;
  output->sizes = sizes_of(rows, is_batched, count);
  output->values = Tensor();
  output->owned = std::move(encoded);
  output->offset = 0;
  output->size = output->owned.size();
  output->is_strings = true;
  return absl::OkStatus();
}

}  // namespace tt::server
