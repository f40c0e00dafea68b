// CustomOperator: an operator that a library adds to an engine at run time, beside the generated table.
//
// It is made of texts, its declaration, which the engine sends to clients, so that both sides have the same parameters,
// rules and defaults. A library adds it to the engine (engine/extension/); a client that learns of it has the same
// object without kernels. Immutable once it is in the table (custom_table.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schema/custom_body.h"
#include "engine/schema/custom_declaration.h"
#include "engine/schema/custom_expression.h"
#include "engine/schema/op.h"

namespace tt {

// Ids from here on are those of custom operators.
inline constexpr uint16_t kFirstCustomOp = 0x8000;
inline constexpr bool is_custom(uint16_t id) { return id >= kFirstCustomOp; }

// One formula of a gradient. The masks are those of SavedPart.
struct CustomFormula {
  std::vector<size_t> targets;  // parameters; several if the formula returns one gradient for each
  CustomExpression expression;
  uint32_t params = 0, args = 0, results = 0;
  uint32_t plain = 0;  // other arguments that it reads
};

class CustomOperator {
 public:
  // Throws Error (ValueError) that says what is wrong with the declaration.
  explicit CustomOperator(CustomDeclaration declaration);
  CustomOperator(const CustomOperator&) = delete;
  CustomOperator& operator=(const CustomOperator&) = delete;

  const CustomDeclaration& declaration() const { return declaration_; }
  const Op& op() const { return op_; }
  std::string_view name() const { return op_.name; }
  std::string_view doc() const { return declaration_.doc; }
  bool has_body() const { return body_.has_value(); }
  absl::Span<const CustomFormula> formulas() const { return formulas_; }
  // False: arguments that require grad are an error, because nothing says that the results do not depend on them.
  bool has_gradient() const { return has_body() || !declaration_.gradient.empty(); }
  // "" for results without a name.
  absl::Span<const std::string> result_names() const { return result_names_; }

  // The body's steps for these arguments, whose tensors are not read: the last one computes the result. Requires
  // has_body(). Throws Error.
  std::vector<BodyStep> steps(Args args) const;

  // Computes sizes, strides and dtypes of the results; part of tt::infer(). Throws Error.
  void infer(Args args, Inference* out) const;

  // For CustomTable.
  void set_id(uint16_t id) { op_.id = id; }
  // The library's function, in an engine. Clients have none: infer() then asks (Questions).
  using Rule = std::function<void(const CustomOperator&, Args, Inference*)>;
  void set_rule(Rule rule) { rule_ = std::move(rule); }

  // Answers, while it exists, what infer() asks on this thread about the results of a call, in a client, of an operator
  // whose rule is a library's function. The answers are kept by the operator, a limited number of them.
  class Questions {
   public:
    using Answer = std::function<std::vector<TensorMeta>(const Op&, Args)>;
    explicit Questions(Answer answer);
    ~Questions();
    Questions(const Questions&) = delete;
    Questions& operator=(const Questions&) = delete;

   private:
    friend class CustomOperator;
    const Answer answer_;
    const Questions* const before_;
  };

 private:
  struct Replies;

  void infer_by_reply(Args args, Inference* out) const;
  void parse_schema();
  void parse_rules();
  void parse_body();
  void parse_gradient();
  size_t find_param(std::string_view name) const;  // params_.size() if there is none
  Arg parse_default(std::string_view text, const Param& param);

  const CustomDeclaration declaration_;
  std::deque<std::string> texts_;                     // what names and defaults point to
  std::vector<std::unique_ptr<int64_t[]>> integers_;  // of defaults
  std::vector<std::unique_ptr<double[]>> reals_;
  std::vector<Param> params_;
  std::vector<SavedPart> saved_;
  std::vector<std::string> result_names_;
  std::vector<CustomExpression> shapes_, dtypes_;
  std::optional<CustomExpression> body_;
  std::vector<CustomFormula> formulas_;
  Op op_{};
  Rule rule_;
  std::shared_ptr<Replies> replies_;
};

}  // namespace tt
