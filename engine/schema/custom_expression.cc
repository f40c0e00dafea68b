#include "engine/schema/custom_expression.h"

#include <cctype>
#include <charconv>
#include <utility>

#include "engine/schema/error.h"

namespace tt {
namespace {

using Kind = CustomExpression::Kind;

constexpr int kMaxDepth = 32;
constexpr size_t kMaxNodes = 512;

CustomExpression call_of(std::string_view name, std::vector<CustomExpression> items) {
  CustomExpression call;
  call.kind = Kind::kCall;
  call.text = name;
  call.items = std::move(items);
  return call;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  CustomExpression parse() {
    check(ErrorKind::kValue, text_.size() <= kMaxFormula, "a formula has at most ", kMaxFormula, " characters, got ",
          text_.size());
    CustomExpression expression = comparison();
    skip_space();
    require(at_ == text_.size(), "an operator or the end");
    return expression;
  }

 private:
  // Counts a node, and the depth during its construction.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      check(ErrorKind::kValue, ++parser_.depth_ <= kMaxDepth, "a formula has at most ", kMaxDepth, " nested levels");
      check(ErrorKind::kValue, ++parser_.nodes_ <= kMaxNodes, "a formula has at most ", kMaxNodes, " parts");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  void require(bool ok, std::string_view expected) const {
    if (ok) return;
    fail(ErrorKind::kValue, "expected ", expected, " at position ", at_, " of the formula '", text_.substr(0, 200),
         "'");
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  char next() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  static bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
  static bool continues_name(char c) { return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)); }

  std::string_view name() {
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    require(at_ > begin && begins_name(text_[begin]), "a name");
    return text_.substr(begin, at_ - begin);
  }

  CustomExpression comparison() {
    const Level level(*this);
    CustomExpression left = sum();
    constexpr std::pair<std::string_view, std::string_view> kOperators[] = {{"<=", "le"}, {">=", "ge"}, {"==", "eq"},
                                                                            {"!=", "ne"}, {"<", "lt"},  {">", "gt"}};
    for (const auto& [token, op] : kOperators) {
      if (take(token)) return call_of(op, {std::move(left), sum()});
    }
    return left;
  }
  CustomExpression sum() {
    CustomExpression left = product();
    for (;;) {
      const Level level(*this);
      if (take("+")) {
        left = call_of("add", {std::move(left), product()});
      } else if (take("-")) {
        left = call_of("sub", {std::move(left), product()});
      } else {
        return left;
      }
    }
  }
  CustomExpression product() {
    CustomExpression left = unary();
    for (;;) {
      const Level level(*this);
      if (next() == '*' && text_.substr(at_, 2) != "**") {
        take("*");
        left = call_of("mul", {std::move(left), unary()});
      } else if (take("//")) {
        left = call_of("floor_divide", {std::move(left), unary()});
      } else if (take("/")) {
        left = call_of("true_divide", {std::move(left), unary()});
      } else {
        return left;
      }
    }
  }
  CustomExpression unary() {
    const Level level(*this);
    if (take("-")) {
      CustomExpression value = unary();
      if (value.kind != Kind::kNumber) return call_of("neg", {std::move(value)});
      value.number =
          is_integral(value.number.dtype()) ? Scalar(-value.number.to_int()) : Scalar(-value.number.to_double());
      return value;
    }
    CustomExpression value = postfix();
    if (take("**")) return call_of("pow", {std::move(value), unary()});
    return value;
  }
  CustomExpression postfix() {
    CustomExpression value = primary();
    for (;;) {
      const Level level(*this);
      if (take(".")) {
        std::string attribute(name());
        if (take("(")) {
          CustomExpression call = call_of(attribute, {std::move(value)});
          arguments(&call);
          value = std::move(call);
        } else {
          CustomExpression read;
          read.kind = Kind::kAttribute;
          read.text = std::move(attribute);
          read.items.push_back(std::move(value));
          value = std::move(read);
        }
      } else if (take("[")) {
        CustomExpression read;
        read.kind = Kind::kIndex;
        read.items.push_back(std::move(value));
        read.items.push_back(comparison());
        require(take("]"), "']'");
        value = std::move(read);
      } else {
        return value;
      }
    }
  }
  void arguments(CustomExpression* call) {
    if (take(")")) return;
    do {
      skip_space();
      const size_t begin = at_;
      if (begins_name(next())) {
        std::string keyword(name());
        if (next() == '=' && text_.substr(at_, 2) != "==") {
          take("=");
          call->keywords.push_back({std::move(keyword), comparison()});
          continue;
        }
        at_ = begin;
      }
      require(call->keywords.empty(), "a keyword argument");
      call->items.push_back(comparison());
    } while (take(","));
    require(take(")"), "')'");
  }
  CustomExpression primary() {
    const Level level(*this);
    const char c = next();
    CustomExpression value;
    if (c == '(') {
      take("(");
      value = comparison();
      require(take(")"), "')'");
      return value;
    }
    if (c == '[') {
      take("[");
      value.kind = Kind::kList;
      if (take("]")) return value;
      do {
        value.items.push_back(comparison());
      } while (take(","));
      require(take("]"), "']'");
      return value;
    }
    if (c == '"' || c == '\'') return string(c);
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return number();
    std::string text(name());
    while (text_.substr(at_, 2) == "::") {
      at_ += 2;
      text += "::";
      text += name();
    }
    if (take("(")) {
      value = call_of(text, {});
      arguments(&value);
      return value;
    }
    value.kind = Kind::kName;
    if (text == "None") {
      value.kind = Kind::kNone;
    } else if (text == "True" || text == "False") {
      value.kind = Kind::kNumber;
      value.number = Scalar(text == "True");
    } else {
      value.text = std::move(text);
    }
    return value;
  }
  CustomExpression string(char quote) {
    const size_t end = text_.find(quote, at_ + 1);
    require(end != std::string_view::npos, "the end of a string");
    CustomExpression value;
    value.kind = Kind::kString;
    value.text = text_.substr(at_ + 1, end - at_ - 1);
    require(value.text.find('\\') == std::string::npos, "a string without backslashes");
    at_ = end + 1;
    return value;
  }
  CustomExpression number() {
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    CustomExpression value;
    value.kind = Kind::kNumber;
    int64_t integer = 0;
    double real = 0;
    const auto as_integer = std::from_chars(begin, end, integer);
    const auto as_real = std::from_chars(begin, end, real);
    require(as_real.ec == std::errc(), "a number");
    const bool is_integer = as_integer.ec == std::errc() && as_integer.ptr == as_real.ptr;
    value.number = is_integer ? Scalar(integer) : Scalar(real);
    at_ += static_cast<size_t>(as_real.ptr - begin);
    return value;
  }

  const std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  size_t nodes_ = 0;
};

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

CustomExpression parse_custom_expression(std::string_view text) { return Parser(text).parse(); }

std::vector<std::string_view> split_formulas(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (c == separator && depth == 0) {
      parts.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (const std::string_view last = trimmed(text.substr(begin)); !last.empty()) parts.push_back(last);
  return parts;
}

}  // namespace tt
