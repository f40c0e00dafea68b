// Declarations of custom operators: schemas, rules, bodies, gradients, numbers, and what clients receive.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/schema/custom_query.h"
#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

using testing::HasSubstr;

CustomDeclaration declared(const std::string& schema, const std::string& shape = "same(x)",
                           const std::string& dtype = "", const std::string& gradient = "none",
                           const std::string& body = "") {
  CustomDeclaration d;
  d.schema = schema;
  d.shape = body.empty() ? shape : "";
  d.dtype = dtype;
  d.gradient = body.empty() ? gradient : "";
  d.body = body;
  return d;
}

std::string error_of(const CustomDeclaration& declaration) {
  try {
    const CustomOperator op(declaration);
    return "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kValue);
    return error.message();
  }
}

TensorMeta meta(Sizes sizes, DType dtype = DType::kFloat32) {
  TensorMeta t;
  t.sizes = sizes;
  t.strides = contiguous_strides(sizes);
  t.dtype = dtype;
  return t;
}

TEST(CustomDeclarationTest, ReadsParameters) {
  const CustomOperator op(declared(
      "my::f(Tensor x, Tensor? y=None, Tensor[] list=[], *, int n=-3, float e=1, bool b=True, int[] s=[1, 2], "
      "float[] r=[0.5], str mode='sum, (mean)', ScalarType t=int8, Scalar c=2.5, int? k=None) -> (Tensor a, Tensor)",
      "same(x); same(x)"));
  ASSERT_EQ(op.op().params.size(), 12u);
  EXPECT_EQ(op.name(), "my::f");
  EXPECT_EQ(op.op().num_outputs, 2);
  EXPECT_EQ(op.result_names()[0], "a");
  const auto params = op.op().params;
  EXPECT_FALSE(params[0].has_default);
  EXPECT_TRUE(params[1].optional && params[1].default_value.is_none());
  EXPECT_FALSE(params[2].keyword_only);
  EXPECT_TRUE(params[3].keyword_only);
  EXPECT_EQ(params[3].default_value.integer, -3);
  EXPECT_EQ(params[4].default_value.kind, Arg::Kind::kFloat);
  EXPECT_EQ(params[6].default_value.ints()[1], 2);
  EXPECT_EQ(params[7].default_value.floats()[0], 0.5);
  EXPECT_EQ(params[8].default_value.string(), "sum, (mean)");
  EXPECT_EQ(params[9].default_value.dtype(), DType::kInt8);
}

TEST(CustomDeclarationTest, RefusesFaults) {
  const struct {
    CustomDeclaration declaration;
    const char* message;
  } kCases[] = {
      {declared(""), "expected a schema such as"},
      {declared("f(Tensor x) -> Tensor"), "expected a name such as"},
      {declared("my::f Tensor x -> Tensor"), "expected a schema such as"},
      {declared("my::f(Tensor x -> Tensor"), "expected ')'"},
      {declared("my::f(Tensor x, Tensor x) -> Tensor"), "declared twice"},
      {declared("my::f(Tensor x, int n=1, int m) -> Tensor"), "follows one with a default"},
      {declared("my::f(Tensor x, *, *) -> Tensor"), "one '*'"},
      {declared("my::f(Tensor x) -> int"), "results of type Tensor"},
      {declared("my::f(Tensor x) -> ()"), "1 to 16 results"},
      {declared("my::f(Tensor x, int n=[1]) -> Tensor"), "has another type"},
      {declared("my::f(Tensor x, int n=1 +) -> Tensor"), "expected"},
      {declared("my::f.out(Tensor x) -> Tensor"), "expected a name such as"},
      {declared("my::f(Tensor x) -> (Tensor, Tensor)"), "expected 2 shapes"},
      {declared("my::f(Tensor x) -> Tensor", "[" + std::string(100, '(') + "1"), "nested levels"},
      {declared("my::f(Tensor x) -> Tensor", "[" + std::string(5000, ' ') + "1]"), "at most 4096"},
      {declared("my::f(Tensor x) -> Tensor", "same(x)", "float31"), "neither a parameter nor a dtype"},
      {declared("my::f(Tensor x) -> Tensor", "", "", "", "x"), "at least one operator"},
      {declared("my::f(Tensor x) -> Tensor", "", "", "", "exp(x, x)"), "takes 1"},
      {declared("my::f(Tensor x) -> Tensor", "", "", "", "where(x, x)"), "without its argument"},
      {declared("my::f(Tensor x) -> Tensor", "", "", "", "rand_like(x)"), "no pointwise operator"},
      {declared("my::f(Tensor x) -> Tensor", "", "", "", "exp(y)"), "names no parameter"},
      {declared("my::f(Tensor x) -> Tensor", "same(x)", "", "y: g"), "no parameter of type Tensor"},
      {declared("my::f(Tensor x) -> Tensor", "same(x)", "", "x: g; x: g"), "two gradients"},
      {declared("my::f(Tensor x) -> Tensor", "same(x)", "", "x: g1"), "neither a parameter nor a result"},
      {declared("my::f(Tensor x) -> Tensor", "same(x)", "", "x: g4294967296"), "neither a parameter"},
      {declared("my::f(Tensor x) -> Tensor", "same(x)", "", "x"), "'parameter: formula'"},
  };
  for (const auto& each : kCases) EXPECT_THAT(error_of(each.declaration), HasSubstr(each.message));
}

TEST(CustomDeclarationTest, EvaluatesRules) {
  const CustomOperator op(declared("my::f(Tensor x, Tensor y, int n) -> (Tensor, Tensor, Tensor)",
                                   "broadcast(x, y); x.shape + [max(n, 2), y.size(-1) // 2]; equal(x, x)",
                                   "promote(x, y); same(y); floating(y)"));
  const TensorMeta x = meta({3, 1}), y = meta({5}, DType::kInt32);
  const Arg args[] = {Arg(&x), Arg(&y), Arg(7)};
  Inference out;
  op.infer(args, &out);
  ASSERT_EQ(out.outputs.size(), 3u);
  EXPECT_EQ(out.outputs[0].sizes, (Sizes{3, 5}));
  EXPECT_EQ(out.outputs[0].dtype, DType::kFloat32);
  EXPECT_EQ(out.outputs[1].sizes, (Sizes{3, 1, 7, 2}));
  EXPECT_EQ(out.outputs[1].dtype, DType::kInt32);
  EXPECT_EQ(out.outputs[2].dtype, DType::kFloat32);
}

TEST(CustomDeclarationTest, RulesCheckSizes) {
  const struct {
    const char* rule;
    const char* message;
  } kCases[] = {{"[n - 100]", "negative dimension"},
                {"[x.size(4)]", "Dimension out of range"},
                {"[n * n * n * n]", "exceeds 64 bits"},
                {"[n // (n - n)]", "positive divisor"},
                {"n", "has to be a list"},
                {"[-x.shape]", "expected a number"},
                {"[-(n - n - 9223372036854775807 - 1)]", "exceeds 64 bits"},
                {"unknown(n, n)", "unknown function"}};
  const TensorMeta x = meta({3});
  for (const auto& each : kCases) {
    const CustomOperator op(declared("my::f(Tensor x, int n) -> Tensor", each.rule));
    const Arg args[] = {Arg(&x), Arg(int64_t{3'000'000'000'000})};
    const Arg few[] = {Arg(&x), Arg(7)};
    Inference out;
    try {
      op.infer(std::string(each.rule) == "[n - 100]" ? few : args, &out);
      ADD_FAILURE() << each.rule;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr(each.message));
    }
  }
}

TEST(CustomDeclarationTest, LowersBodies) {
  const CustomOperator op(declared("my::f(Tensor x, float s=2) -> Tensor", "", "", "", "x * (s + 1) / (1 + abs(x))"));
  const TensorMeta x = meta({3});
  const Arg args[] = {Arg(&x), Arg(2.0)};
  const std::vector<BodyStep> steps = op.steps(args);
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].op->id, op_id::kMul);
  EXPECT_EQ(steps[0].sources[1].value.to_double(), 3.0);  // numbers are computed at once
  EXPECT_EQ(steps[1].op->id, op_id::kAbs);
  EXPECT_EQ(steps[3].sources[0].index, 0u);
  EXPECT_TRUE(op.op().is_composite && op.op().differentiable);
}

TEST(CustomDeclarationTest, RulesLimitLists) {
  const CustomOperator op(declared("my::f(int[] n) -> Tensor", "[(n + n)[0]]", "float32"));
  const std::vector<int64_t> few(2000, 3), many(3000, 3);
  Inference out;
  const Arg args[] = {Arg(absl::MakeConstSpan(few))};
  op.infer(args, &out);
  EXPECT_EQ(out.outputs[0].sizes, Sizes{3});
  const Arg long_args[] = {Arg(absl::MakeConstSpan(many))};
  EXPECT_THROW(op.infer(long_args, &out), Error);
}

TEST(CustomDeclarationTest, NumbersOfBodiesDoNotWrapAround) {
  const TensorMeta x = meta({3}, DType::kFloat64);
  const auto number_in = [&](const char* body, const Scalar& value) {
    const CustomOperator op(declared("my::f(Tensor x, Scalar w) -> Tensor", "", "", "", body));
    const Arg args[] = {Arg(&x), Arg(value)};
    return op.steps(args)[0].sources[1].value.to_double();
  };
  const Scalar largest = Scalar::of_unsigned(UINT64_MAX);
  EXPECT_EQ(number_in("x * (-w)", largest), -18446744073709551615.0);
  EXPECT_EQ(number_in("x + w * 1", largest), 18446744073709551615.0);
  EXPECT_EQ(number_in("x + (w - 1)", Scalar(INT64_MIN)), -9223372036854775808.0 - 1);
  EXPECT_EQ(number_in("x * (-w)", Scalar(INT64_MIN)), 9223372036854775808.0);
  EXPECT_EQ(number_in("x * (-w)", Scalar(3)), -3.0);
}

TEST(CustomDeclarationTest, MasksOfGradients) {
  const CustomOperator op(declared("my::f(Tensor a, Tensor b, float s) -> (Tensor, Tensor)", "same(a); same(b)", "",
                                   "a: g0 * b + result1; b: my::g(g1, s)"));
  ASSERT_EQ(op.formulas().size(), 2u);
  EXPECT_EQ(op.formulas()[0].params, 1u);
  EXPECT_EQ(op.formulas()[0].args, 2u);
  EXPECT_EQ(op.formulas()[0].results, 2u);
  EXPECT_EQ(op.formulas()[1].plain, 4u);
  EXPECT_TRUE(op.op().params[1].differentiable);
}

TEST(CustomDeclarationTest, EqualDigestsAreNotEnough) {
  CustomDeclaration one = declared("my::f(Tensor x) -> Tensor"), other = one;
  other.doc = "another text";
  EXPECT_TRUE(one.is_same(other));
  other.library = 7;  // without a rule, of no meaning
  EXPECT_TRUE(one.is_same(other));
  one.has_rule = other.has_rule = true;
  EXPECT_FALSE(one.is_same(other));
  EXPECT_FALSE(declared("my::f(Tensor x) -> Tensor", "same(x)").is_same(declared("my::f(Tensor x) -> Tensor", "[1]")));
}

TEST(CustomTableTest, NumbersAreOfDeclarations) {
  const auto make = [](const char* schema) { return std::make_unique<CustomOperator>(declared(schema)); };
  const CustomOperator& first = add_custom_op(make("table::f(Tensor x) -> Tensor"));
  EXPECT_TRUE(is_custom(first.op().id));
  EXPECT_EQ(&add_custom_op(make("table::f(Tensor x) -> Tensor")), &first);
  const CustomOperator& other = add_custom_op(make("table::f(Tensor x, int n=1) -> Tensor"));
  EXPECT_NE(other.op().id, first.op().id);
  EXPECT_EQ(find_op(first.op().id), &first.op());
  EXPECT_EQ(find_op("table::f"), &first.op());
  EXPECT_EQ(find_op("table::g"), nullptr);
  EXPECT_THROW(add_custom_op(make("table::h(Tensor x) -> Tensor"), first.op().id), Error);
  EXPECT_THROW(add_custom_op(make("table::h(Tensor x) -> Tensor"), 17), Error);
}

TEST(CustomDeclarationTest, AreSentToClients) {
  CustomDeclaration d = declared("my::f(Tensor x) -> Tensor", "same(x)", "float32", "x: g");
  d.doc = "1:2, with : and \n";
  const NumberedDeclaration sent[] = {{40000, d}, {40001, declared("my::g(Tensor x) -> Tensor")}};
  const std::string text = encode_declarations(sent);
  const auto received = decode_declarations(text);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].id, 40000);
  EXPECT_EQ(received[0].declaration, d);
  for (size_t size = 1; size < text.size(); ++size) {
    if (const std::string part = text.substr(0, size); part != encode_declarations({sent, 1}))
      EXPECT_THROW(decode_declarations(part), Error) << size;
  }
}

TEST(CustomQueryTest, RoundTrip) {
  const CustomOperator& op = add_custom_op(std::make_unique<CustomOperator>(
      declared("query::f(Tensor x, Tensor? y, Tensor[] l, int[] n, float e, str s, Scalar c) -> Tensor", "same(x)")));
  const TensorMeta x = meta({2, 3}, DType::kInt8);
  const TensorMeta* list[] = {&x, &x};
  const int64_t numbers[] = {4, 5};
  const Arg args[] = {Arg(&x),
                      Arg(),
                      Arg(absl::MakeConstSpan(list)),
                      Arg(absl::MakeConstSpan(numbers)),
                      Arg(0.5),
                      Arg(std::string_view("text")),
                      Arg(std::complex<double>(1, 2))};
  const std::vector<int64_t> sent = encode_query(op.op(), args);
  const Query query(sent);
  EXPECT_EQ(encode_query(query.op(), query.args()), sent);
  for (size_t size = 0; size < sent.size(); ++size) {
    EXPECT_THROW(Query(absl::MakeConstSpan(sent).first(size)), Error) << size;
  }
  const TensorMeta results[] = {meta({7}), meta({}, DType::kBool)};
  const auto received = decode_results(encode_results(results));
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].sizes, (Sizes{7}));
  EXPECT_EQ(received[1].dtype, DType::kBool);
  EXPECT_THROW(decode_results("1234567"), Error);
}

}  // namespace
}  // namespace tt
