// Rules that replace written-out losses over classes by cross_entropy.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/program/passes/rewrite_rules.h"

namespace tt {
namespace {

std::optional<Replacement> cross_entropy(const Types& types) {
  if (types.dim("D", "x") != std::min<int64_t>(types.of("x").dim() - 1, 1)) return std::nullopt;  // that of the classes
  return Replacement{"cross_entropy",
                     {slot_arg(types.slot("x")), slot_arg(types.slot("t")), types.argument("@weight"),
                      types.argument("@ignored"), types.argument("@reduction")}};
}

// Stands for no index: what gather, scatter and one_hot refuse as an index, and a target would have to equal to be
// ignored.
constexpr int64_t kNoneIgnored = std::numeric_limits<int64_t>::min();

// The indices of the rows of the log probabilities, 0 to the last one.
constexpr char kRows[] =
    "r = arange(@count, @dtype, @device) | arange_from(0, @count, 1, @dtype, @device) | "
    "literal(@bytes, R, @dtype, @device) ";

// Whether what kRows matches is the indices of all rows of x, and t are indices, too.
bool counts_rows(const Types& types) {
  const int64_t rows = types.of("x").sizes[0];
  const DType target = types.of("t").dtype;
  if (target != DType::kInt64 && target != DType::kInt32) return false;
  const Arg& dtype = types.argument("@dtype");
  if (!dtype.is_none() && dtype.dtype() != DType::kInt64) return false;
  if (!types.has_argument("@bytes")) {
    const Arg& count = types.argument("@count");
    return count.kind == Arg::Kind::kInt && count.integer == rows;
  }
  const std::string_view bytes = types.argument("@bytes").string();
  if (types.list("R").size() != 1 || bytes.size() != static_cast<size_t>(rows) * sizeof(int64_t)) return false;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t index;
    std::memcpy(&index, bytes.data() + static_cast<size_t>(i) * sizeof(index), sizeof(index));
    if (index != i) return false;
  }
  return true;
}

// Adds calls to `made` that compute classes of the indices `t` of a dimension: from its end if they are negative. They
// refuse indices that are out of bounds as the indexing of x does.
Arg classes_of_indices(const Types& types, Replacement* made) {
  const TensorMeta& x = types.of("x");
  const size_t first = made->before.size();
  made->before.push_back({"arange", {Arg(x.sizes[1]), Arg(DType::kInt64), Arg(x.device)}});
  made->before.push_back({"unsqueeze", {prepared(first), Arg(int64_t{0})}});
  made->before.push_back({"zeros", {Arg(), Arg(DType::kInt64), Arg(x.device)}, {1}});
  made->before.push_back({"index", {prepared(first + 1), Arg()}, {}, {prepared_slot(first + 2), types.slot("t")}});
  return prepared(first + 3);
}

// Whether classes are picked by indices instead of gather().
bool has_indices(const Types& types) { return types.has_argument("@dtype"); }

// The targets as classes, after calls that are added to `made`.
Arg classes_of(const Types& types, Replacement* made) {
  return has_indices(types) ? classes_of_indices(types, made) : slot_arg(types.slot("t"));
}

// Factors: numbers, or what Programs compute of numbers and sizes that depend on the input.
constexpr char kFactors[] =
    "e = div(full(E, $eb, @e), full(E, $em, @f)) "
    "of_each = $b | e of_target = $a | sub(full(E, $a, @less), e) ";
constexpr const char* kFactorDTypes[] = {"@e", "@f", "@less"};

// Whether what kFactors matches are scalars that are computed of exact numbers, so that their values are known.
bool are_scalar_factors(const Types& types) {
  if (types.has_list("E") && !types.list("E").empty()) return false;
  return std::all_of(std::begin(kFactorDTypes), std::end(kFactorDTypes), [&](const char* dtype) {
    if (!types.has_argument(dtype)) return true;
    const Arg& given = types.argument(dtype);
    return given.kind == Arg::Kind::kInt && given.integer == static_cast<int64_t>(DType::kFloat64);
  });
}

// The factor of the loss of each class.
double factor_of_each(const Types& types) {
  return types.has_number("$b") ? types.number("$b") : types.number("$eb") / types.number("$em");
}

// Whether x has rows of scores, with a target for each, which a column of indices has been made of.
bool are_rows_with_targets(const Types& types) {
  if (!are_scalar_factors(types)) return false;
  const TensorMeta &x = types.of("x"), &t = types.of("t");
  if (x.dim() != 2 || t.dim() != 1 || t.sizes[0] != x.sizes[0] || types.dim("D", "x") != 1) return false;
  for (const char* last : {"G", "M", "Q", "S"}) {  // dimensions of rows that are gathered, added or removed
    if (types.has_list(last) && types.dim(last, "x") != 1) return false;
  }
  if (types.has_list("U") && types.dim("U", "x") != 1) return false;
  if (has_indices(types)) return counts_rows(types);
  if (!types.has_list("V")) return true;
  const std::vector<int64_t>& column = types.list("V");
  return column.size() == 2 && column[1] == 1 && (column[0] == -1 || column[0] == x.sizes[0]);
}

// cross_entropy, if the factor of the target's loss and that of the sum of all losses are 1 - label_smoothing and
// label_smoothing / classes.
std::optional<Replacement> smoothed(const Types& types, double of_target, double of_each, std::string_view reduction) {
  constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();
  const double smoothing = of_each * static_cast<double>(types.of("x").sizes[1]);
  if (!(smoothing > 0 && smoothing <= 1) || !(std::abs(of_target + smoothing - 1) <= kRounding)) return std::nullopt;
  Replacement made{"cross_entropy", {slot_arg(types.slot("x"))}};
  for (const Arg& arg : {classes_of(types, &made), Arg(), Arg(kNoneIgnored), Arg(reduction), Arg(smoothing)})
    made.args.push_back(arg);
  return made;
}

// A weighted sum of the target's loss and of the mean (whose dimension is M) or the sum (Q) of the losses of all
// classes. Not of nll_loss, because the other summand contains the targets that it ignores.
std::optional<Replacement> mixed_losses(const Types& types, std::string_view reduction) {
  if (!are_rows_with_targets(types)) return std::nullopt;
  const bool is_mean = !types.has_list("Q");
  const double divisor = types.factor("$n") * (is_mean ? static_cast<double>(types.of("x").sizes[1]) : 1);
  const double less = types.has_argument("@less") ? types.number("$eb") / types.number("$em") : 0;
  return smoothed(types, types.number("$a") - less, factor_of_each(types) / divisor, reduction);
}
std::optional<Replacement> each_mixed_loss(const Types& types) { return mixed_losses(types, "none"); }
std::optional<Replacement> mean_mixed_loss(const Types& types) { return mixed_losses(types, "mean"); }
std::optional<Replacement> sum_of_mixed_losses(const Types& types) { return mixed_losses(types, "sum"); }

// The negative product of log probabilities with targets of which none is 0: a number at the target's class, a smaller
// one elsewhere. Not of equal numbers, because the operator's factor of the target's loss is 0 then, and its product
// with an infinite loss NaN.
std::optional<Replacement> soft_targets(const Types& types, std::string_view reduction) {
  if (!are_rows_with_targets(types)) return std::nullopt;
  const TensorMeta& x = types.of("x");
  const double elsewhere = factor_of_each(types);
  const bool is_zero = elsewhere < std::numeric_limits<float>::min();  // if the targets are rounded to float32
  if (is_zero || !(elsewhere * static_cast<double>(x.sizes[1]) < 1)) return std::nullopt;
  if (types.has_number("$value")) return smoothed(types, types.number("$value") - elsewhere, elsewhere, reduction);
  if (types.number("$k") != static_cast<double>(x.sizes[1])) return std::nullopt;
  const DType dtype =
      types.has_argument("@d") ? static_cast<DType>(types.argument("@d").integer) : DType::kFloat32;  // of a product
  if (dtype != x.dtype) return std::nullopt;
  return smoothed(types, types.number("$a"), elsewhere, reduction);
}
std::optional<Replacement> each_soft_target(const Types& types) { return soft_targets(types, "none"); }
std::optional<Replacement> mean_of_soft_targets(const Types& types) { return soft_targets(types, "mean"); }
std::optional<Replacement> sum_of_soft_targets(const Types& types) { return soft_targets(types, "sum"); }

// A reduction of the losses of all positions.
std::optional<Replacement> reduced_cross_entropy(const Types& types, std::string_view reduction) {
  const Arg& given = types.argument("@reduction");
  if (given.kind != Arg::Kind::kString || given.string() != "none") return std::nullopt;
  const Arg weight = types.has_argument("@weight") ? types.argument("@weight") : Arg();
  return Replacement{"cross_entropy",
                     {slot_arg(types.slot("x")), slot_arg(types.slot("t")), weight, types.argument("@ignored"),
                      Arg(reduction), types.argument("@smoothing")}};
}
std::optional<Replacement> sum_of_cross_entropy(const Types& types) { return reduced_cross_entropy(types, "sum"); }
// Of losses of which none is ignored, because a mean counts the zeros of ignored ones.
std::optional<Replacement> mean_cross_entropy(const Types& types) {
  const Arg& ignored = types.argument("@ignored");
  if (ignored.kind != Arg::Kind::kInt || ignored.integer != kNoneIgnored) return std::nullopt;
  return reduced_cross_entropy(types, "mean");
}

// Whether p are the log probabilities of one class per row of x, whose classes are its last dimension, in a tensor
// without that dimension or with one element there.
bool are_picked(const Types& types) {
  const TensorMeta &x = types.of("x"), &t = types.of("t");
  const int64_t last = x.dim() - 1;
  if (last < 1 || t.dim() != last || !std::equal(t.sizes.begin(), t.sizes.end(), x.sizes.begin())) return false;
  for (const char* dim : {"D", "G", "S", "U"}) {
    if (types.has_list(dim) && !types.is_last(dim, "x")) return false;
  }
  if (has_indices(types)) return last == 1 && counts_rows(types);
  if (!types.has_list("V")) return true;
  const std::vector<int64_t>& column = types.list("V");
  if (static_cast<int64_t>(column.size()) != last + 1 || column.back() != 1) return false;
  return std::equal(t.sizes.begin(), t.sizes.end(), column.begin(),
                    [](int64_t size, int64_t given) { return given == size || given == -1; });
}

// `made`, and a call of its result with other sizes (of view) or none (of neg).
Replacement followed(Replacement made, std::string_view op, std::vector<int64_t> sizes = {}) {
  made.before.push_back({made.op, std::move(made.args), std::move(made.integers)});
  made.op = op;
  made.args = {prepared(made.before.size() - 1)};
  if (!sizes.empty()) made.args.emplace_back();
  made.integers = std::move(sizes);
  return made;
}

// The negative log probabilities of the targets.
std::optional<Replacement> picked_losses(const Types& types, std::string_view reduction) {
  if (!are_picked(types)) return std::nullopt;
  const TensorMeta &x = types.of("x"), &t = types.of("t");
  const int64_t classes = x.sizes.back(), rows = t.numel();
  if (types.has_number("$n") && types.number("$n") != static_cast<double>(rows)) return std::nullopt;
  Replacement made{"cross_entropy", {slot_arg(types.slot("x"))}};
  made.args.push_back(classes_of(types, &made));
  if (x.dim() > 2) {
    made.before.push_back({"reshape", {made.args[0], Arg()}, {rows, classes}});
    made.before.push_back({"reshape", {made.args[1], Arg()}, {rows}});
    made.args = {prepared(0), prepared(1)};
  }
  made.args.insert(made.args.end(), {Arg(), Arg(kNoneIgnored), Arg(reduction)});
  return made;
}
std::optional<Replacement> mean_picked_loss(const Types& types) { return picked_losses(types, "mean"); }
std::optional<Replacement> sum_of_picked_losses(const Types& types) { return picked_losses(types, "sum"); }
std::optional<Replacement> each_picked_loss(const Types& types) {
  const std::optional<Replacement> made = picked_losses(types, "none");
  const auto& sizes = types.of("t").sizes;
  if (!made || sizes.size() == 1) return made;
  return followed(*made, "view", std::vector<int64_t>(sizes.begin(), sizes.end()));
}
std::optional<Replacement> each_picked(const Types& types) {
  const std::optional<Replacement> losses = each_picked_loss(types);
  return losses ? std::optional(followed(*losses, "neg")) : std::nullopt;
}

// nll_loss of log probabilities whose leading dimensions become one.
std::optional<Replacement> flat_cross_entropy(const Types& types) {
  const TensorMeta& x = types.of("x");
  const int64_t last = x.dim() - 1;
  if (last < 1 || !types.is_last("D", "x")) return std::nullopt;
  const int64_t classes = x.sizes.back(), rows = x.numel() / std::max<int64_t>(classes, 1);
  if (types.has_list("V")) {
    const std::vector<int64_t>& sizes = types.list("V");
    if (sizes.size() != 2 || (sizes[0] != -1 && sizes[0] != rows) || (sizes[1] != -1 && sizes[1] != classes))
      return std::nullopt;
  } else if (types.number("$end") != static_cast<double>(last - 1) && types.number("$end") != -2) {
    return std::nullopt;
  }
  return Replacement{"cross_entropy",
                     {prepared(0), slot_arg(types.slot("t")), types.argument("@weight"), types.argument("@ignored"),
                      types.argument("@reduction")},
                     {},
                     {{"reshape", {slot_arg(types.slot("x")), Arg()}, {rows, classes}}}};
}

void add_picked_losses(AddRule add) {
  const std::string logs = "L = log_softmax(x, D) ";
  // Parts of the patterns: l, log probabilities, and n, negative ones.
  const auto add_reductions = [&](const std::string& parts) {
    for (const char* mean :
         {"neg(mean(l))", "mean(n)", "neg(div(sum(l), $n))", "div(neg(sum(l)), $n)", "div(sum(n), $n)"}) {
      add(parts + mean, &mean_picked_loss, true);
    }
    for (const char* sum : {"neg(sum(l))", "sum(n)"}) add(parts + sum, &sum_of_picked_losses, true);
  };
  const std::string indexed = kRows + logs;
  add_reductions(indexed + "l = index(L, [r, t]) n = neg(l) ");
  add(indexed + "neg(index(L, [r, t]))", &each_picked_loss, true);
  add(indexed + "index(L, [r, t])", &each_picked, true);
  const std::string gathered = logs +
                               "i = unsqueeze(t, U) | unsqueeze(detach(t), U) | view(t, V) | reshape(t, V) "
                               "p = gather(L, G, i) ";
  const auto rows_of = [](const char* column) {
    std::vector<std::string> rows;
    for (const char* row : {"squeeze_dim($, S)", "select($, S, 0)", "squeeze($)", "view($, W)", "reshape($, W)"})
      rows.push_back(absl::StrReplaceAll(row, {{"$", column}}));
    return rows;
  };
  const std::vector<std::string> rows = rows_of("p"), negative_rows = rows_of("neg(p)");
  add_reductions(absl::StrCat(gathered, "l = ", absl::StrJoin(rows, " | "), " | p n = neg(l) | ",
                              absl::StrJoin(negative_rows, " | "), " "));
  for (const std::string& row : negative_rows) add(gathered + row, &each_picked_loss, true);
  for (const std::string& row : rows) {
    add(absl::StrCat(gathered, "neg(", row, ")"), &each_picked_loss, true);
    add(gathered + row, &each_picked, true);
  }
  add("L = log_softmax(x, D) nll_loss(view(L, V) | reshape(L, V) | flatten(L, 0, $end), t, @weight, @ignored, "
      "@reduction)",
      &flat_cross_entropy, true);
}

void add_smoothed_losses(absl::FunctionRef<void(const std::string& text, Build build)> add) {
  const std::string logs = std::string(kFactors) + "L = log_softmax(x, D) ";
  const std::string picked = logs +
                             "i = unsqueeze(t, U) | unsqueeze(detach(t), U) | view(t, V) | reshape(t, V) "
                             "p = gather(L, G, i) ";
  const std::string gathered = picked +
                               "l = squeeze_dim(p, S) | select(p, S, 0) | squeeze(p) "
                               "n = neg(l) | squeeze_dim(neg(p), S) | select(neg(p), S, 0) | squeeze(neg(p)) ";
  for (const std::string& rows : {gathered, logs + kRows + "p = index(L, [r, t]) l = p n = neg(p) "}) {
    const std::string each = rows +
                             "m = mean(L, M) | div(sum(L, Q), $n) | sum(L, Q) "
                             "s = neg(m) | div(neg(sum(L, Q)), $n) ";
    add(each + "add(mul(n, of_target), mul(s, of_each))", &each_mixed_loss);
    add(each + "sub(mul(n, of_target), mul(m, of_each) | div(mul(sum(L, Q), of_each), $n))", &each_mixed_loss);
    const std::string reduced = each +
                                "k = mean(n) | mean(neg(p)) | neg(mean(l)) | neg(mean(p)) "
                                "o = mean(m) | mean(L) ";
    add(reduced + "add(mul(k, of_target), mul(mean(s) | neg(o), of_each))", &mean_mixed_loss);
    add(reduced + "sub(mul(k, of_target), mul(o, of_each))", &mean_mixed_loss);
  }
  // Columns of losses, which only a reduction makes equal to the operator's.
  const std::string columns = picked +
                              "m = mean(L, M, True) | div(sum(L, Q, True), $n) | sum(L, Q, True) "
                              "s = neg(m) | div(neg(sum(L, Q, True)), $n) ";
  add(columns + "mean(add(mul(neg(p), of_target), mul(s, of_each)))", &mean_mixed_loss);
  add(columns + "sum(add(mul(neg(p), of_target), mul(s, of_each)))", &sum_of_mixed_losses);
  const std::string soft =
      std::string(kFactors) +
      "L = log_softmax(x, D) i = unsqueeze(t, U) | unsqueeze(detach(t), U) | view(t, V) | reshape(t, V) "
      "z = full_like(L, $b) | full_like(x, $b) | fill(zeros_like(L), $b) | fill(zeros_like(x), $b) "
      "h = to_dtype(one_hot(t, $k), @d) | one_hot(t, $k) "
      "q = scatter_value(z, G, i, $value) | add(mul(h, $a), of_each) ";
  add(soft + "neg(sum(mul(q, L), Q))", &each_soft_target);
  add(soft + "sum(neg(mul(q, L)) | mul(neg(q), L) | mul(q, neg(L)), Q)", &each_soft_target);
  add(soft + "neg(mean(sum(mul(q, L), Q)))", &mean_of_soft_targets);
  add(soft + "neg(sum(mul(q, L)))", &sum_of_soft_targets);
  add("sum(cross_entropy(x, t, @weight, @ignored, @reduction, @smoothing))", &sum_of_cross_entropy);
  add("mean(cross_entropy(x, t, None, @ignored, @reduction, @smoothing))", &mean_cross_entropy);
}

}  // namespace

void add_loss_rules(AddRule add) {
  // Not of log(softmax(x)), which is -inf where log_softmax(x) is finite.
  add("nll_loss(log_softmax(x, D), t, @weight, @ignored, @reduction)", &cross_entropy, false);
  add_smoothed_losses([&](const std::string& text, Build build) { add(text, build, false); });
  add_picked_losses(add);
}

}  // namespace tt
