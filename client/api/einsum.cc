#include "client/api/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/api/errors.h"
#include "client/api/functions.h"
#include "client/api/matrices.h"

namespace teletensor {
namespace {

// An operand or an intermediate result. Each label is the name of a dimension.
struct Term {
  std::string labels;
  Tensor value;
};

bool has(const std::string& labels, char c) { return labels.find(c) != std::string::npos; }

std::string filtered(const std::string& labels, const auto& keep) {
  std::string kept;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(kept), keep);
  return kept;
}

[[noreturn]] void refuse(const std::string& why) { throw RuntimeError("einsum(): " + why); }

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// Replaces "..." by labels that the equation does not use, the last of which stand for the last dimensions.
class Equation {
 public:
  Equation(std::string_view text, TensorList operands) {
    std::string equation = filtered(std::string(text), [](char c) { return c != ' '; });
    const size_t arrow = equation.find("->");
    inputs = split(equation.substr(0, arrow));
    if (inputs.size() != operands.size()) {
      refuse("the equation has " + std::to_string(inputs.size()) + " operands, got " + std::to_string(operands.size()));
    }
    // Labels of "...": characters after the letters, one per dimension.
    int64_t widest = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool dots = inputs[i].find("...") != std::string::npos;
      if (dots) widest = std::max(widest, operands[i].dim() - static_cast<int64_t>(inputs[i].size()) + 3);
    }
    for (int64_t i = 0; i < widest; ++i) dots_ += static_cast<char>(1 + i);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t extra = operands[i].dim() - static_cast<int64_t>(inputs[i].size()) + 3;
      expand(&inputs[i], extra);
      if (static_cast<int64_t>(inputs[i].size()) != operands[i].dim()) {
        refuse("the number of subscripts in the equation (" + std::to_string(inputs[i].size()) +
               ") does not match the number of dimensions (" + std::to_string(operands[i].dim()) + ") for operand " +
               std::to_string(i));
      }
    }
    std::string all;
    for (const std::string& labels : inputs) all += labels;
    if (arrow == std::string::npos) {
      std::string once =
          filtered(all, [&](char c) { return !has(dots_, c) && std::count(all.begin(), all.end(), c) == 1; });
      std::sort(once.begin(), once.end());
      output = dots_ + once;
    } else {
      output = equation.substr(arrow + 2);
      expand(&output, widest);
      for (const char c : output) {
        if (!has(all, c) && !has(dots_, c))
          refuse(std::string("output subscript ") + c + " does not appear in the equation for any input operand");
        if (std::count(output.begin(), output.end(), c) > 1)
          refuse(std::string("output subscript ") + c + " appears more than once in the output");
      }
    }
  }
  std::vector<std::string> inputs;
  std::string output;

 private:
  void expand(std::string* labels, int64_t extra) const {
    const size_t at = labels->find("...");
    if (at != std::string::npos && extra >= 0)
      labels->replace(at, 3, dots_.substr(dots_.size() - static_cast<size_t>(extra)));
    for (const char c : *labels) {
      if (!std::isalpha(static_cast<unsigned char>(c)) && !has(dots_, c))
        refuse(std::string("expected subscripts in [a-zA-Z], got ") + c);
    }
  }
  std::string dots_;
};

// Replaces dimensions with the same label by their diagonal.
Term diagonal_of(Term term) {
  for (size_t i = 0; i < term.labels.size();) {
    const char c = term.labels[i];
    const size_t second = term.labels.find(c, i + 1);
    if (second == std::string::npos) {
      ++i;
      continue;
    }
    if (term.value.size(static_cast<int64_t>(i)) != term.value.size(static_cast<int64_t>(second)))
      refuse(std::string("subscript ") + c + " is repeated for dimensions of different sizes");
    term.value = term.value.diagonal(0, static_cast<int64_t>(i), static_cast<int64_t>(second));
    term.labels.erase(second, 1);
    term.labels.erase(i, 1);
    term.labels += c;
  }
  return term;
}

Term summed(Term term, const auto& keep) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (!keep(term.labels[i])) dims.push_back(static_cast<int64_t>(i));
  }
  if (dims.empty()) return term;
  return {filtered(term.labels, keep), term.value.sum(dims)};
}

Tensor permuted(const Term& term, const std::string& order) {
  if (order == term.labels) return term.value;
  std::vector<int64_t> dims;
  for (const char c : order) dims.push_back(static_cast<int64_t>(term.labels.find(c)));
  return term.value.permute(dims);
}

// Contracts two operands: keeps labels of both that are used later, and sums over those that are not.
Term contracted(Term a, Term b, const std::string& later, const std::map<char, int64_t>& sizes) {
  a = summed(std::move(a), [&](char c) { return has(b.labels, c) || has(later, c); });
  b = summed(std::move(b), [&](char c) { return has(a.labels, c) || has(later, c); });
  const std::string batch = filtered(a.labels, [&](char c) { return has(b.labels, c) && has(later, c); });
  const std::string inner = filtered(a.labels, [&](char c) { return has(b.labels, c) && !has(later, c); });
  const std::string rows = filtered(a.labels, [&](char c) { return !has(b.labels, c); });
  const std::string columns = filtered(b.labels, [&](char c) { return !has(a.labels, c); });
  std::map<char, int64_t> own;  // a size of 1 broadcasts
  for (const Term* term : {&a, &b}) {
    for (size_t i = 0; i < term->labels.size(); ++i) {
      int64_t& size = own.emplace(term->labels[i], 1).first->second;
      size = std::max(size, term->value.size(static_cast<int64_t>(i)) == 1 ? 1 : sizes.at(term->labels[i]));
    }
  }
  for (auto& [label, size] : own) {
    if (sizes.at(label) == 0) size = 0;
  }
  const auto sizes_of = [&](const std::string& labels) {
    std::vector<int64_t> list;
    for (const char c : labels) list.push_back(own.at(c));
    return list;
  };
  const auto matrix = [&](const Term& term, const std::string& left, const std::string& right) {
    const Tensor value = permuted(term, batch + left + right).expand(sizes_of(batch + left + right));
    std::vector<int64_t> shape = sizes_of(batch);
    shape.push_back(internal::product(sizes_of(left)));
    shape.push_back(internal::product(sizes_of(right)));
    return value.reshape(shape);
  };
  const Tensor result = matrix(a, rows, inner).matmul(matrix(b, inner, columns));
  return {batch + rows + columns, result.reshape(sizes_of(batch + rows + columns))};
}

// The two terms whose result has the fewest elements compared with the terms themselves; on a tie, those whose
// contraction needs the fewest multiplications.
std::pair<size_t, size_t> cheapest_pair(const std::vector<Term>& terms, const std::string& output,
                                        const std::map<char, int64_t>& sizes) {
  const auto count = [&](const std::string& labels) {
    double n = 1;
    for (const char c : labels) n *= static_cast<double>(sizes.at(c));
    return n;
  };
  std::pair<size_t, size_t> best{0, 1};
  std::pair<double, double> least{};
  bool is_first = true;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t j = i + 1; j < terms.size(); ++j) {
      const std::string& a = terms[i].labels;
      const std::string both = a + filtered(terms[j].labels, [&](char c) { return !has(a, c); });
      std::string later = output;
      for (size_t k = 0; k < terms.size(); ++k) later += k != i && k != j ? terms[k].labels : "";
      const double left = count(filtered(both, [&](char c) { return has(later, c); }));
      const std::pair<double, double> cost{left - count(a) - count(terms[j].labels), count(both)};
      if (!is_first && cost >= least) continue;
      is_first = false;
      least = cost;
      best = {i, j};
    }
  }
  return best;
}

}  // namespace

Tensor einsum(std::string_view text, TensorList operands) {
  if (operands.empty()) refuse("must provide at least one operand");
  const Equation equation(text, operands);
  std::vector<Term> terms;
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    terms.push_back(diagonal_of({equation.inputs[i], operands[i]}));
    for (size_t d = 0; d < terms.back().labels.size(); ++d) {
      const int64_t size = terms.back().value.size(static_cast<int64_t>(d));
      int64_t& known = sizes.emplace(terms.back().labels[d], size).first->second;
      if (known == 1) known = size;
      if (size != 1 && size != known) {
        refuse("operands do not broadcast with remapped shapes: subscript " + std::string(1, terms.back().labels[d]) +
               " has sizes " + std::to_string(known) + " and " + std::to_string(size));
      }
    }
  }
  while (terms.size() > 1) {
    const auto [i, j] = cheapest_pair(terms, equation.output, sizes);
    const Term a = terms[i], b = terms[j];
    terms.erase(terms.begin() + static_cast<ptrdiff_t>(j));
    terms.erase(terms.begin() + static_cast<ptrdiff_t>(i));
    std::string later = equation.output;
    for (const Term& term : terms) later += term.labels;
    terms.push_back(contracted(a, b, later, sizes));
  }
  const Term result = summed(terms[0], [&](char c) { return has(equation.output, c); });
  return permuted(result, equation.output);
}

Tensor tensordot(const Tensor& a, const Tensor& b, IntArrayRef dims_self, IntArrayRef dims_other) {
  if (dims_self.size() != dims_other.size()) throw RuntimeError("both dimension lists should have same length");
  if (a.dim() + b.dim() > 52) throw RuntimeError("tensordot: expected at most 52 dimensions");
  const auto label = [](int64_t i) { return static_cast<char>(i < 26 ? 'a' + i : 'A' + (i - 26)); };
  std::string left, right, output;
  for (int64_t d = 0; d < a.dim(); ++d) left += label(d);
  for (int64_t d = 0; d < b.dim(); ++d) right += label(a.dim() + d);
  std::string contracted_labels;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    const auto x = static_cast<size_t>(internal::wrapped_dim(dims_self[i], a.dim()));
    const auto y = static_cast<size_t>(internal::wrapped_dim(dims_other[i], b.dim()));
    const int64_t m = a.size(static_cast<int64_t>(x)), n = b.size(static_cast<int64_t>(y));
    if (m != n && m != 1 && n != 1) {
      throw RuntimeError("contracted dimensions need to match, but first has size " + std::to_string(m) + " in dim " +
                         std::to_string(x) + " and second has size " + std::to_string(n) + " in dim " +
                         std::to_string(y));
    }
    if (has(contracted_labels, left[x]) || has(contracted_labels, right[y]))
      throw RuntimeError("tensordot: a dimension is listed twice");
    right[y] = left[x];
    contracted_labels += left[x];
  }
  for (const char c : left + right) {
    if (!has(contracted_labels, c)) output += c;
  }
  return einsum(left + "," + right + "->" + output, {a, b});
}

}  // namespace teletensor
