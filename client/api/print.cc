// Prints tensors in libtorch's format (ATen/core/Formatting).
#include <algorithm>
#include <cmath>
#include <complex>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <vector>

#include "client/api/errors.h"
#include "client/api/operators.h"
#include "client/api/session.h"
#include "client/api/tensor.h"

namespace teletensor {
namespace {

constexpr int64_t kLineSize = 80;

struct Format {
  double scale = 1;
  int width = 0;
};

// The number of digits before the point; 1 for 0.
double exponent(double value) { return value == 0 ? 1 : std::floor(std::log10(value)) + 1; }

// Sets the stream's format for the elements, and returns their width and common factor.
Format set_format(std::ostream& out, absl::Span<const double> values) {
  if (values.empty()) return {};
  bool integers = true;
  double least = INFINITY, largest = 0;
  for (double v : values) {
    if (!std::isfinite(v)) continue;
    integers = integers && v == std::ceil(v);
    least = std::min(least, std::fabs(v));
    largest = std::max(largest, std::fabs(v));
  }
  const bool none = !std::isfinite(least);
  const double from = none ? 1 : exponent(least), to = none ? 1 : exponent(largest);
  if (integers) {
    if (to > 9) {
      out << std::scientific << std::setprecision(4);
      return {1, 11};
    }
    out << std::defaultfloat;
    return {1, static_cast<int>(to) + 1};
  }
  if (to - from > 4) {
    out << std::scientific << std::setprecision(4);
    return {1, std::fabs(to) > 99 || std::fabs(from) > 99 ? 12 : 11};
  }
  out << std::fixed << std::setprecision(4);
  if (to > 5 || to < 0) return {std::pow(10, to - 1), 7};
  return {1, to == 0 ? 7 : static_cast<int>(to) + 6};
}

void print_scale(std::ostream& out, double scale) {
  std::ostringstream text;
  text << std::defaultfloat << scale;
  out << text.str() << " *\n";
}

void print_matrix(std::ostream& out, absl::Span<const double> values, int64_t rows, int64_t columns, int indent) {
  const auto [scale, width] = set_format(out, values);
  const std::string space(static_cast<size_t>(indent), ' ');
  const int64_t per_line = (kLineSize - indent) / (width + 1);
  for (int64_t first = 0, last = 0; first < columns; first = last + 1) {
    last = std::min(first + per_line, columns) - 1;
    if (per_line < columns) {
      if (first != 0) out << '\n';
      out << "Columns " << first + 1 << " to " << last + 1 << space;
    }
    if (scale != 1) {
      print_scale(out, scale);
      out << space;
    }
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = first; c <= last; ++c) {
        out << std::setw(width) << values[static_cast<size_t>(row * columns + c)] / scale << (c == last ? '\n' : ' ');
      }
      if (row != rows - 1) out << space;
    }
  }
}

void print_parts(std::ostream& out, absl::Span<const double> values, IntArrayRef sizes) {
  const int64_t rows = sizes[sizes.size() - 2], columns = sizes[sizes.size() - 1];
  const size_t outer = sizes.size() - 2, part = static_cast<size_t>(rows * columns);
  std::vector<int64_t> counter(outer, 0);
  // libtorch counts the first dimension fastest.
  for (bool start = true;; start = false) {
    if (!start) {
      size_t i = 0;
      while (i < outer && ++counter[i] >= sizes[i]) counter[i++] = 0;
      if (i == outer) return;
      out << '\n';
    }
    size_t position = 0;
    out << '(';
    for (size_t i = 0; i < outer; ++i) {
      position = position * static_cast<size_t>(sizes[i]) + static_cast<size_t>(counter[i]);
      out << counter[i] + 1 << ',';
    }
    out << ".,.) = \n";
    print_matrix(out, values.subspan(position * part, part), rows, columns, 1);
  }
}

void print_complex(std::ostream& out, const Tensor& tensor) {
  for (const std::complex<double>& value : tensor.data<std::complex<double>>()) out << value << '\n';
}

void print_values(std::ostream& out, const Tensor& tensor) {
  if (tensor.is_complex()) return print_complex(out, tensor);
  const std::vector<double> values = tensor.data<double>();
  if (tensor.dim() == 0) {
    out << std::defaultfloat << values[0] << '\n';
  } else if (values.empty()) {
    return;
  } else if (tensor.dim() == 1) {
    const auto [scale, width] = set_format(out, values);
    if (scale != 1) print_scale(out, scale);
    for (double v : values) out << std::setw(width) << v / scale << '\n';
  } else if (tensor.dim() == 2) {
    print_matrix(out, values, tensor.size(0), tensor.size(1), 0);
  } else {
    print_parts(out, values, tensor.sizes());
  }
}

}  // namespace

std::string Tensor::toString() const {
  if (!defined()) return "UndefinedType";
  const std::string_view place = is_cuda() ? "CUDA" : device().is_meta() ? "Meta" : "CPU";
  return std::string(place) + std::string(tt::scalar_type_name(dtype())) + "Type";
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  if (!tensor.defined()) return stream << "[ Tensor (undefined) ]";
  std::ostringstream text;  // the stream's format is not changed
  if (!tensor.device().is_meta()) print_values(text, tensor);
  stream << text.str() << "[ " << tensor.toString() << '{';
  for (size_t i = 0; i < tensor.sizes().size(); ++i) stream << (i == 0 ? "" : ",") << tensor.sizes()[i];
  return stream << "} ]";
}

}  // namespace teletensor
