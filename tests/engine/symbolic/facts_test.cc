// Symbolic expressions and facts.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "engine/symbolic/facts.h"

namespace symbolic {
namespace {

class ExpressionsTest : public testing::Test {
 protected:
  Expression c(int64_t value) { return x_.constant(value); }
  std::string text(Expression e) { return x_.to_string(e, &Facts::name_of_symbol); }

  Expressions x_;
  Expression n_ = x_.symbol({2, INT64_MAX}), m_ = x_.symbol({2, INT64_MAX});
};

TEST_F(ExpressionsTest, EqualSumsAreOneExpression) {
  EXPECT_EQ(x_.add(n_, m_), x_.add(m_, n_));
  EXPECT_EQ(x_.subtract(x_.add(n_, c(3)), n_), c(3));
  const Expression sum = x_.add(n_, c(1));
  EXPECT_EQ(x_.multiply(sum, sum), x_.add(x_.multiply(n_, n_), x_.add(x_.multiply(c(2), n_), c(1))));
  EXPECT_EQ(text(x_.subtract(x_.multiply(c(2), x_.multiply(n_, m_)), c(1))), "2*s0*s1 - 1");
}

TEST_F(ExpressionsTest, QuotientsAreReduced) {
  EXPECT_EQ(x_.floor_divide(x_.multiply(c(6), n_), c(3)), x_.multiply(c(2), n_));
  EXPECT_EQ(x_.floor_divide(x_.add(x_.multiply(c(4), n_), c(5)), c(4)), x_.add(n_, c(1)));
  EXPECT_EQ(x_.floor_divide(x_.floor_divide(n_, c(2)), c(3)), x_.floor_divide(n_, c(6)));
  EXPECT_EQ(x_.floor_divide(x_.multiply(x_.multiply(n_, m_), c(8)), x_.multiply(m_, c(4))), x_.multiply(n_, c(2)));
  EXPECT_EQ(x_.floor_divide(x_.multiply(x_.add(n_, c(1)), m_), x_.add(n_, c(1))), m_);
  EXPECT_EQ(x_.floor_divide(n_, x_.add(n_, c(1))), c(0));
  EXPECT_EQ(x_.modulo(x_.multiply(n_, m_), n_), c(0));
  EXPECT_EQ(text(x_.floor_divide(x_.subtract(n_, c(3)), c(2))), "(s0 + 1)//2 - 2");
  EXPECT_THROW(x_.floor_divide(n_, c(0)), std::domain_error);
}

TEST_F(ExpressionsTest, MinimaAreReduced) {
  EXPECT_EQ(x_.minimum(n_, c(1)), c(1));
  EXPECT_EQ(x_.maximum(n_, c(1)), n_);
  EXPECT_EQ(x_.minimum(x_.add(n_, c(2)), x_.add(n_, c(5))), x_.add(n_, c(2)));
  EXPECT_EQ(x_.minimum(x_.subtract(n_, c(50)), c(50)), x_.subtract(x_.minimum(n_, c(100)), c(50)));
  EXPECT_EQ(x_.minimum(x_.minimum(n_, c(100)), c(50)), x_.minimum(n_, c(50)));
}

TEST_F(ExpressionsTest, MaximaOfSizesAndOneAreFactors) {
  const Expression k = x_.symbol({0, INT64_MAX}), factor = x_.maximum(k, c(1)), product = x_.multiply(factor, factor);
  EXPECT_EQ(text(product), "max(s2, 1)*max(s2, 1)");
  EXPECT_EQ(x_.range(factor).low, 1);
  EXPECT_EQ(x_.range(x_.subtract(factor, k)), (Range{0, 1}));
  EXPECT_EQ(x_.maximum(x_.subtract(k, c(3)), c(1)),
            x_.add(c(1), x_.subtract(x_.subtract(k, c(3)), x_.minimum(x_.subtract(k, c(3)), c(1)))));
  EXPECT_EQ(x_.substitute(product, 2, x_.add(n_, m_)), x_.multiply(x_.add(n_, m_), x_.add(n_, m_)));
  for (const int64_t size : {0, 1, 7}) {
    EXPECT_EQ(x_.evaluate(factor, [&](int32_t) { return size; }), size == 0 ? 1 : size);
  }
  const std::vector<Expressions::Part> parts = x_.parts(x_.subtract(x_.multiply(c(3), factor), c(4)));
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].coefficient, -4);
  ASSERT_EQ(parts[1].factors.size(), 1U);
  EXPECT_EQ(parts[1].factors[0].sign, "max");
  EXPECT_EQ(parts[1].factors[0].operands[0], k);
}

TEST_F(ExpressionsTest, RangesSeeWhatCancels) {
  // The sizes of x[50:100] and of a remainder.
  const Expression length = x_.subtract(x_.minimum(n_, c(100)), x_.minimum(n_, c(50)));
  EXPECT_EQ(x_.range(length), (Range{0, 50}));
  EXPECT_EQ(x_.range(x_.modulo(n_, c(7))), (Range{0, 6}));
  EXPECT_EQ(x_.range(x_.subtract(x_.multiply(n_, m_), n_)).low, 2);
  const Expression large = c(int64_t{1} << 62);
  EXPECT_EQ(x_.range(x_.subtract(x_.multiply(large, n_), x_.multiply(large, x_.multiply(m_, n_)))).high, INT64_MIN);
  const Expression whole = x_.floor_divide(x_.multiply(c(6), m_), c(7));
  EXPECT_GE(x_.range(x_.subtract(x_.multiply(n_, m_), x_.multiply(n_, whole))).low, 0);
}

TEST_F(ExpressionsTest, LargeProductsOfSumsThrow) {
  Expression sum = c(1);
  for (int i = 0; i < 70; ++i) sum = x_.add(sum, x_.symbol({0, INT64_MAX}));
  EXPECT_THROW(x_.multiply(sum, sum), std::overflow_error);
}

TEST_F(ExpressionsTest, FactorsBeyond64BitsThrow) {
  const Expression large = x_.multiply(c(INT64_MAX), n_);
  EXPECT_THROW(x_.add(large, n_), std::overflow_error);
  EXPECT_THROW(x_.multiply(large, c(2)), std::overflow_error);
  EXPECT_THROW(x_.floor_divide(c(INT64_MIN), c(-1)), std::overflow_error);
  EXPECT_THROW(modulo(INT64_MIN, -1), std::overflow_error);
}

// Random expressions have the values of their operations, within their ranges.
TEST(ExpressionsRandomTest, HaveTheValuesOfTheirOperations) {
  std::mt19937_64 random(1);
  constexpr size_t kPoints = 12;
  using Values = std::array<int64_t, kPoints>;
  size_t checks = 0;
  for (int round = 0; round < 400; ++round) {
    Expressions x;
    std::vector<std::pair<Expression, Values>> pool;
    std::array<std::array<int64_t, 3>, kPoints> points;
    for (auto& point : points) {
      for (int64_t& value : point) value = 2 + static_cast<int64_t>(random() % (random() % 3 == 0 ? 1000 : 20));
    }
    for (size_t s = 0; s < 1 + random() % 3; ++s) {
      Values values;
      for (size_t i = 0; i < kPoints; ++i) values[i] = points[i][s];
      pool.emplace_back(x.symbol({2, INT64_MAX}), values);
    }
    for (const int64_t constant : {0, 1, 2, 3, 7, -1, 50, 100}) {
      Values values;
      values.fill(constant);
      pool.emplace_back(x.constant(constant), values);
    }
    for (int step = 0; step < 14; ++step) {
      const auto [a, of_a] = pool[random() % pool.size()];
      const auto [b, of_b] = pool[random() % pool.size()];
      const auto kind = random() % 6;
      if (kind >= 3 && kind < 5 && std::ranges::count(of_b, 0) > 0) continue;
      Values expected;
      bool is_large = false;
      for (size_t i = 0; i < kPoints; ++i) {
        const int64_t p = of_a[i], q = of_b[i];
        const std::array<int64_t, 3> sums = {p + q, p - q, p * q};
        expected[i] = kind < 3    ? sums[kind]
                      : kind == 3 ? floor_divided(p, q)
                      : kind == 4 ? p - q * floor_divided(p, q)
                                  : std::min(p, q);
        is_large |= std::abs(expected[i]) > int64_t{1} << 40;
      }
      if (is_large) continue;
      const Expression made = kind == 0   ? x.add(a, b)
                              : kind == 1 ? x.subtract(a, b)
                              : kind == 2 ? x.multiply(a, b)
                              : kind == 3 ? x.floor_divide(a, b)
                              : kind == 4 ? x.modulo(a, b)
                                          : x.minimum(a, b);
      const Range range = x.range(made);
      for (size_t i = 0; i < kPoints; ++i) {
        const int64_t value = x.evaluate(made, [&](int32_t symbol) { return points[i][static_cast<size_t>(symbol)]; });
        ASSERT_EQ(value, expected[i]) << x.to_string(made, &Facts::name_of_symbol);
        ASSERT_TRUE(range.contains(value)) << x.to_string(made, &Facts::name_of_symbol);
        ++checks;
      }
      pool.emplace_back(made, expected);
    }
  }
  EXPECT_GT(checks, 10'000u);
}

TEST(FactsTest, HintsAndLimitsAreNoGuards) {
  Facts facts;
  const Scope scope(facts);
  const int64_t n = number_of(facts, facts.symbol({0, INT64_MAX}, 5)),
                u = number_of(facts, facts.symbol({0, 9}, std::nullopt));
  EXPECT_EQ(hint_of(7), 7);
  EXPECT_FALSE(facts.take_hinted());
  EXPECT_EQ(hint_of(multiply(n, 2)), 10);
  EXPECT_TRUE(facts.take_hinted());
  EXPECT_FALSE(facts.take_hinted());
  EXPECT_TRUE(is_example_within(n, 5));
  EXPECT_FALSE(is_example_within(n, 4));
  EXPECT_TRUE(is_example_within(u, 0));
  EXPECT_TRUE(facts.guards().empty());
  EXPECT_THROW(expression_of(facts, kFirstNumber + 1000), std::invalid_argument);
}

TEST(FactsTest, OutcomesOfTheExampleAreGuards) {
  Facts facts([] { return "line 3"; });
  const Scope scope(facts);
  const int64_t n = number_of(facts, facts.symbol({2, INT64_MAX}, 8));
  const int64_t m = number_of(facts, facts.symbol({2, INT64_MAX}, 8));
  EXPECT_FALSE(is_equal(n, 1));  // follows from the range
  EXPECT_TRUE(facts.guards().empty());
  EXPECT_TRUE(is_equal(n, m));
  ASSERT_EQ(facts.guards().size(), 1u);
  EXPECT_EQ(facts.guards()[0].where, "line 3");
  EXPECT_TRUE(is_equal(add(n, 1), add(m, 1)));  // follows from the guard
  EXPECT_FALSE(is_less(n, 5));
  EXPECT_FALSE(is_less(m, 4));
  EXPECT_EQ(facts.guards().size(), 2u);
  EXPECT_EQ(specialise(m), 8);
  EXPECT_EQ(specialise(n), 8);
  EXPECT_EQ(facts.guards().size(), 3u);
}

TEST(FactsTest, WhatHasNoExampleMustFollow) {
  Facts facts;
  const Scope scope(facts);
  const int64_t u = number_of(facts, facts.symbol({0, INT64_MAX}, std::nullopt));
  EXPECT_FALSE(is_less(u, 0));
  EXPECT_THROW(is_equal(u, 1), Undecided);
  EXPECT_TRUE(facts.assume(expression_of(facts, subtract(u, 3)), Relation::kNotNegative));
  EXPECT_FALSE(is_equal(u, 1));
  EXPECT_FALSE(facts.assume(expression_of(facts, subtract(2, u)), Relation::kNotNegative));  // excluded
}

TEST(FactsTest, SizesOfOneValueInTheExampleStayApart) {
  // x[50:100] and x[100:150], whose sizes are equal for most examples.
  Facts facts;
  const Scope scope(facts);
  const int64_t n = number_of(facts, facts.symbol({2, INT64_MAX}, 8));
  const auto slice = [&](int64_t from, int64_t to) { return subtract(minimum(n, to), minimum(n, from)); };
  const int64_t a = slice(50, 100), b = slice(100, 150);
  EXPECT_FALSE(is_known_equal(a, b));
  EXPECT_TRUE(is_equal(a, b));
  EXPECT_EQ(facts.guards().size(), 1u);
}

}  // namespace
}  // namespace symbolic
