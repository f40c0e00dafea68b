// Rules for neural network operators other than products: normalisations, losses, embeddings, padding, optimizer steps.
// Convolutions and pooling: window_rules.cc.
#include <algorithm>

#include "engine/schema/checked_math.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {
namespace {

const Sizes& sizes_of(const Arg& tensor) { return tensor.tensor->sizes; }
SymInt count(SizesView sizes) {
  SymInt n = 1;
  for (SymInt size : sizes) n *= size;
  return n;
}

void check_reduction(std::string_view reduction) {
  check(ErrorKind::kValue, reduction == "none" || reduction == "mean" || reduction == "sum", reduction,
        " is not a valid value for reduction");
}

void check_label_smoothing(double value) {
  check(value >= 0 && value <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", value);
}

// Checks the size of a per-channel argument of batch_norm.
void check_per_channel(const Arg& a, std::string_view what, SymInt channels) {
  if (a.is_none()) return;
  check(count(sizes_of(a)) == channels, what, " should contain ", channels, " elements not ", count(sizes_of(a)));
}

void check_normalized(const Arg& a, std::string_view what, SizesView shape) {
  check(a.is_none() || SizesView(sizes_of(a)) == shape, "Expected ", what,
        " to be of same shape as normalized_shape, but got ", what, " of shape ",
        a.is_none() ? SizesView() : SizesView(sizes_of(a)), " and normalized_shape = ", shape);
}

// Checks that the list has one entry of the right size per parameter.
void check_step_list(const Arg& params, const Arg& entries, std::string_view what) {
  auto list = entries.list();
  check(list.size() == params.list().size(), "expected as many ", what, " as parameters, got ", list.size(), " for ",
        params.list().size(), " parameters");
  for (size_t i = 0; i < list.size(); ++i) {
    const Sizes& sizes = params.list()[i]->sizes;
    check(list[i]->sizes == sizes, "expected entry ", i, " of ", what, " to have its parameter's sizes ", sizes,
          ", got ", list[i]->sizes);
  }
}

// Checks that an argument, if given, is one number of this dtype on the device.
void check_one_number(const Arg& number, DType dtype, const TensorMeta* beside, std::string_view what) {
  if (number.is_none()) return;
  const TensorMeta& t = *number.tensor;
  check(t.dtype == dtype && t.numel() == 1, "expected ", what, " to have one element of dtype ", name(dtype), ", got ",
        t);
  check(beside == nullptr || t.device == beside->device, "expected ", what, " to be on ",
        beside ? beside->device : t.device, ", got ", t.device);
}

const TensorMeta* first_of(const Arg& tensors) { return tensors.list().empty() ? nullptr : tensors.list()[0]; }

}  // namespace

namespace shape_rules {

Sizes scalar() { return {}; }

Sizes gradient_of(const Arg& grad, Sizes result) {
  check(sizes_of(grad) == result, "Expected a gradient of size ", result, ", got ", sizes_of(grad));
  return result;
}

Sizes dropout(const Arg& input, double p) {
  check(ErrorKind::kValue, p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  return sizes_of(input);
}

Sizes embedding(const Arg& weight, const Arg& indices) {
  const Sizes& rows = sizes_of(weight);
  check(rows.size() == 2, "'weight' must be 2-D, got ", rows);
  Sizes result = sizes_of(indices);
  result.push_back(rows[1]);
  return result;
}

Sizes embedding_backward(const Arg& grad, const Arg& indices, SymInt num_weights) {
  const Sizes& g = sizes_of(grad);
  const Sizes& i = sizes_of(indices);
  check(g.size() == i.size() + 1 && std::equal(i.begin(), i.end(), g.begin()),
        "expected a gradient with the sizes of the indices, ", i, ", and one more dimension, got sizes ", g);
  check(num_weights >= 0, "num_weights must not be negative, got ", num_weights);
  return {num_weights, g.back()};
}

Sizes one_hot(const Arg& input, SymInt num_classes) {
  check(num_classes > 0 || (num_classes == 0 && count(sizes_of(input)) == 0), "num_classes should be positive, got ",
        num_classes);
  Sizes result = sizes_of(input);
  result.push_back(num_classes);
  return result;
}

namespace {

Sizes padded(Sizes result, SizesView pad) {
  check(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  check(pad.size() <= 2 * result.size(),
        "Length of pad should be no more than twice the number of dimensions of the input. ", "Pad length is ",
        pad.size(), " while the input has ", result.size(), " dimensions.");
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    SymInt& size = result[result.size() - 1 - i];
    const SymInt before = size, front = pad[2 * i], back = pad[2 * i + 1];
    SymInt after = 0;
    const bool fits = !add_overflows(size, front, &after) && !add_overflows(after, back, &after) && front >= -before &&
                      back >= -before;
    // What is cropped, within the size.
    const auto cut = [&](SymInt by) { return larger(-larger(by, -before), 0); };
    check(fits && after >= 0 && cut(front) <= before - cut(back), "The input size ", before, ", plus negative padding ",
          front, " and ", back, " resulted in a negative output size, which is invalid. Check dimension ",
          result.size() - 1 - i, " of your input.");
    size = after;
  }
  return result;
}

Sizes padded_edges(const Sizes& sizes, SizesView pad, std::string_view mode) {
  const Sizes result = padded(sizes, pad);
  check(ErrorKind::kNotImplemented, mode == "reflect" || mode == "replicate" || mode == "circular",
        "Unrecognised padding mode ", mode);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const SymInt size = sizes[sizes.size() - 1 - i], before = pad[2 * i], after = pad[2 * i + 1];
    if (before == 0 && after == 0) continue;
    const SymInt most = larger(before, after);
    check(mode != "reflect" || most < size,
          "Padding size should be less than the corresponding input dimension, but got: padding (", before, ", ", after,
          ") at a dimension of size ", size);
    // What is cropped from a dimension does not reappear at its other end.
    const SymInt kept = size + smaller(before, 0) + smaller(after, 0);
    check(mode != "circular" || most <= kept, "Padding value causes wrapping around more than once.");
    check(mode != "replicate" || most <= 0 || size > 0, "expected a dimension with elements to pad, got sizes ", sizes);
  }
  return result;
}

}  // namespace

Sizes pad(const Arg& input, SizesView pad) { return padded(sizes_of(input), pad); }

Sizes pad_edges(const Arg& input, SizesView pad, std::string_view mode) {
  return padded_edges(sizes_of(input), pad, mode);
}

Sizes pad_edges_backward(const Arg& grad, SizesView size, SizesView pad, std::string_view mode) {
  const Sizes result = sizes(size);
  gradient_of(grad, padded_edges(result, pad, mode));
  return result;
}

Sizes cosine_similarity(const Arg& x1, const Arg& x2, int64_t dim) {
  Sizes result = broadcast(x1, x2);
  int64_t d = wrap_dim(dim, static_cast<int64_t>(result.size()));
  if (!result.empty()) result.erase(result.begin() + d);
  return result;
}

Sizes batch_norm(const Arg& input, const Arg& running_mean, const Arg& running_var, const Arg& weight, const Arg& bias,
                 bool training) {
  const Sizes& sizes = sizes_of(input);
  check(sizes.size() >= 2, "Expected input to have channels at dimension 1, got input of size ", sizes);
  check(training || !running_mean.is_none(), "running_mean must be defined in evaluation mode");
  check(training || !running_var.is_none(), "running_var must be defined in evaluation mode");
  check_per_channel(running_mean, "running_mean", sizes[1]);
  check_per_channel(running_var, "running_var", sizes[1]);
  check_per_channel(weight, "weight", sizes[1]);
  check_per_channel(bias, "bias", sizes[1]);
  return sizes;
}

Sizes batch_norm(const Arg& input, const Arg& mean, const Arg& rstd, const Arg& weight) {
  return batch_norm(input, mean, rstd, weight, Arg(), false);
}

Sizes channels(const Arg& input) {
  check(sizes_of(input).size() >= 2, "Expected input to have channels at dimension 1, got input of size ",
        sizes_of(input));
  return {sizes_of(input)[1]};
}

Sizes layer_norm(const Arg& input, SizesView normalized_shape, const Arg& weight, const Arg& bias) {
  const Sizes& sizes = sizes_of(input);
  check(!normalized_shape.empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one ",
        "element, but got normalized_shape = []");
  check_normalized(weight, "weight", normalized_shape);
  check_normalized(bias, "bias", normalized_shape);
  bool fits = sizes.size() >= normalized_shape.size() &&
              std::equal(normalized_shape.rbegin(), normalized_shape.rend(), sizes.rbegin());
  if (!fits) {
    std::string expected;
    for (SymInt size : normalized_shape) absl::StrAppend(&expected, ", ", text_of(size));
    fail(ErrorKind::kRuntime, "Given normalized_shape=", normalized_shape, ", expected input with shape [*", expected,
         "], but got input of size", sizes);
  }
  return sizes;
}

Sizes rows(const Arg& input, SizesView normalized_shape) {
  const Sizes& sizes = sizes_of(input);
  return Sizes(sizes.begin(),
               sizes.end() - static_cast<std::ptrdiff_t>(std::min(normalized_shape.size(), sizes.size())));
}

Sizes group_norm(const Arg& input, SymInt num_groups, const Arg& weight, const Arg& bias) {
  const Sizes& sizes = sizes_of(input);
  check(sizes.size() >= 2, "Expected at least 2 dimensions for input tensor but received ", sizes.size());
  check(sizes[1] > 0, "Expected number of channels to be greater than 0, got ", sizes[1]);
  for (size_t d = 2; d < sizes.size(); ++d) check(sizes[d] > 0, "Expected HxW to be greater than 0, got ", sizes[d]);
  check(num_groups > 0 && sizes[1] % num_groups == 0,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape ", sizes,
        " and num_groups=", num_groups);
  for (const Arg* a : {&weight, &bias}) {
    check(a->is_none() || (sizes_of(*a).size() == 1 && sizes_of(*a)[0] == sizes[1]), "Expected ",
          a == &weight ? "weight" : "bias",
          " to be a vector of size equal to the number of channels in input, but got ",
          a == &weight ? "weight" : "bias", " of shape ", a->is_none() ? SizesView() : SizesView(sizes_of(*a)),
          " and input of shape ", sizes);
  }
  return sizes;
}

Sizes normalize(const Arg& input, double p, SizesView dim) {
  vector_norm(input, p, dim, true);
  return sizes_of(input);
}

Sizes groups(const Arg& input, SymInt num_groups) { return {sizes_of(input)[0], num_groups}; }

Sizes nll_loss(const Arg& input, const Arg& target, const Arg& weight, std::string_view reduction,
               double label_smoothing) {
  check_reduction(reduction);
  check_label_smoothing(label_smoothing);
  const Sizes& x = sizes_of(input);
  const Sizes& t = sizes_of(target);
  check(ErrorKind::kValue, !x.empty(), "Expected 1 or more dimensions (got 0)");
  const size_t channel = x.size() == 1 ? 0 : 1;
  check(ErrorKind::kValue, x.size() == 1 || (!t.empty() && x[0] == t[0]), "Expected input batch_size (", x[0],
        ") to match target batch_size (", t.empty() ? SymInt(0) : t[0], ").");
  Sizes expected = x;
  expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(channel));
  check(t == expected, "Expected target size ", expected, ", got ", t);
  check(weight.is_none() || (sizes_of(weight).size() == 1 && sizes_of(weight)[0] == x[channel]),
        "weight tensor should be defined either for all ", x[channel],
        " classes or no classes but got weight tensor of shape: ",
        weight.is_none() ? SizesView() : SizesView(sizes_of(weight)));
  return reduction == "none" ? t : Sizes{};
}

Sizes multi_margin_loss(const Arg& input, const Arg& target, int64_t p, const Arg& weight, std::string_view reduction) {
  check_reduction(reduction);
  check(ErrorKind::kValue, p == 1 || p == 2, "only p == 1 and p == 2 supported");
  const Sizes& x = sizes_of(input);
  const Sizes& t = sizes_of(target);
  check(x.size() <= 2 && t.size() <= 1 && count(t) == (x.size() == 2 ? x[0] : SymInt(1)),
        "target tensor should be 1-D with size equal to the batch size. Expected target size [",
        x.size() == 2 ? x[0] : SymInt(1), "] but got ", t);
  if (!weight.is_none()) {
    check(ErrorKind::kValue, sizes_of(weight).size() == 1, "weight must be one-dimensional");
    const SymInt classes = x.empty() ? SymInt(1) : x.back();
    check(sizes_of(weight)[0] == classes, "inconsistent weight size, expected ", classes, " but got ",
          sizes_of(weight));
  }
  return reduction == "none" ? t : Sizes{};
}

Sizes multilabel_margin_loss(const Arg& input, const Arg& target, std::string_view reduction) {
  check_reduction(reduction);
  const Sizes& x = sizes_of(input);
  check(x == sizes_of(target), "inconsistent target size: ", sizes_of(target), " for input of size: ", x);
  check(x.size() <= 2 && (x.empty() || x.back() != 0),
        "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", x);
  return reduction == "none" && x.size() == 2 ? Sizes{x[0]} : Sizes{};
}

Sizes loss(const Arg& input, const Arg& target, std::string_view reduction) {
  check_reduction(reduction);
  Sizes sizes = broadcast(input, target);
  return reduction == "none" ? sizes : Sizes{};
}

Sizes loss(const Arg& input, const Arg& target, const Arg& other, std::string_view reduction) {
  check_reduction(reduction);
  Sizes sizes = broadcast(input, target, other);
  return reduction == "none" ? sizes : Sizes{};
}

Sizes margin_ranking_loss(const Arg& input1, const Arg& input2, const Arg& target, std::string_view reduction) {
  const size_t n = sizes_of(input1).size();
  check(sizes_of(input2).size() == n && sizes_of(target).size() == n,
        "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: torch.Size(",
        sizes_of(input1), "), input2: torch.Size(", sizes_of(input2), "), target: torch.Size(", sizes_of(target), ") ");
  return loss(input1, input2, target, reduction);
}

Sizes cosine_embedding_loss(const Arg& input1, const Arg& input2, const Arg& target, std::string_view reduction) {
  check_reduction(reduction);
  Sizes sizes = broadcast_sizes(cosine_similarity(input1, input2, -1), sizes_of(target));
  return reduction == "none" ? sizes : Sizes{};
}

Sizes triplet_margin_loss(const Arg& anchor, const Arg& positive, const Arg& negative, double margin,
                          std::string_view reduction) {
  check_reduction(reduction);
  check(ErrorKind::kValue, margin > 0, "margin must be greater than 0, got ", margin);
  const size_t a = sizes_of(anchor).size(), p = sizes_of(positive).size(), n = sizes_of(negative).size();
  check(
      a == p && p == n,
      "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor ",
      a, "D, positive ", p, "D, and negative ", n, "D inputs");
  Sizes sizes = broadcast_sizes(pairwise_distance(anchor, positive, false), pairwise_distance(anchor, negative, false));
  return reduction == "none" ? sizes : Sizes{};
}

Sizes smooth_loss(const Arg& input, const Arg& target, std::string_view reduction, double beta, bool zero_allowed) {
  check(beta > 0 || (zero_allowed && beta == 0), zero_allowed
                                                     ? "smooth_l1_loss does not support negative values for beta."
                                                     : "huber_loss does not support non-positive values for delta.");
  return loss(input, target, reduction);
}

Sizes binary_cross_entropy(const Arg& input, const Arg& target, const Arg& weight, std::string_view reduction) {
  check_reduction(reduction);
  check(ErrorKind::kValue, sizes_of(input) == sizes_of(target), "Using a target size (", sizes_of(target),
        ") that is different to the input size (", sizes_of(input),
        ") is deprecated. Please ensure they have the same size.");
  Sizes sizes = broadcast(input, weight);
  return reduction == "none" ? sizes : Sizes{};
}

Sizes binary_cross_entropy_with_logits(const Arg& input, const Arg& target, const Arg& weight, const Arg& pos_weight,
                                       std::string_view reduction) {
  check_reduction(reduction);
  check(ErrorKind::kValue, sizes_of(input) == sizes_of(target), "Target size (", sizes_of(target),
        ") must be the same as input size (", sizes_of(input), ")");
  Sizes sizes = broadcast(input, weight, pos_weight);
  return reduction == "none" ? sizes : Sizes{};
}

Sizes kl_div(const Arg& input, const Arg& target, std::string_view reduction) {
  if (reduction != "batchmean") return loss(input, target, reduction);
  check(!sizes_of(input).empty(),
        "reduction 'batchmean' requires an input with a batch dimension, got a zero-dimensional input");
  broadcast(input, target);
  return {};
}

Checked step_options(const Arg& options, SymInt count) {
  const TensorMeta& meta = *options.tensor;
  check(meta.sizes == Sizes{count} && meta.dtype == DType::kFloat64 && meta.device.type == DeviceType::kCPU,
        "expected options of ", count, " float64 numbers on the CPU, got ", meta);
  return {};
}

Checked sgd_step(const Arg& params, const Arg& grads, const Arg& momentum_buffers, double momentum,
                 const Arg& found_inf) {
  check_step_list(params, grads, "gradients");
  if (momentum != 0) check_step_list(params, momentum_buffers, "momentum_buffers");
  check_one_number(found_inf, DType::kFloat32, first_of(params), "found_inf");
  return {};
}

Checked adam_step(const Arg& params, const Arg& grads, const Arg& exp_avgs, const Arg& exp_avg_sqs,
                  const Arg& max_exp_avg_sqs, bool amsgrad, int64_t step, const Arg& found_inf, const Arg& steps) {
  check(step > 0, "step must be at least 1, got ", step);
  check_step_list(params, grads, "gradients");
  check_step_list(params, exp_avgs, "exp_avgs");
  check_step_list(params, exp_avg_sqs, "exp_avg_sqs");
  if (amsgrad) check_step_list(params, max_exp_avg_sqs, "max_exp_avg_sqs");
  check_one_number(found_inf, DType::kFloat32, first_of(params), "found_inf");
  check_one_number(steps, DType::kFloat32, first_of(params), "steps");
  return {};
}

Checked amp_unscale(const Arg& grads, const Arg& found_inf, const Arg& inv_scale) {
  for (const TensorMeta* grad : grads.list()) {
    check(is_floating(grad->dtype), "expected floating-point gradients, got ", *grad);
  }
  check_one_number(found_inf, DType::kFloat32, first_of(grads), "found_inf");
  check_one_number(inv_scale, DType::kFloat32, first_of(grads), "inv_scale");
  return {};
}

Checked amp_update_scale(const Arg& scale, const Arg& growth_tracker, const Arg& found_inf) {
  check_one_number(scale, DType::kFloat32, nullptr, "scale");
  check_one_number(growth_tracker, DType::kInt32, scale.tensor, "growth_tracker");
  check_one_number(found_inf, DType::kFloat32, scale.tensor, "found_inf");
  return {};
}

}  // namespace shape_rules

namespace dtype_rules {

DType cast_floating(const Arg& input, std::optional<DType> given) {
  return require_floating(given.value_or(same(input)));
}

DType embedding(const Arg& rows, const Arg& indices) {
  DType t = same(indices);
  check(t == DType::kInt64 || t == DType::kInt32,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got ",
        scalar_type_name(t), " instead (while checking arguments for embedding)");
  require_real(same(rows));
  return same(rows);
}

DType one_hot(const Arg& indices) {
  check(same(indices) == DType::kInt64, "one_hot is only applicable to index tensor of type LongTensor, got ",
        scalar_type_name(same(indices)));
  return DType::kInt64;
}

DType max_pool2d_backward(const Arg& values, const Arg& indices) {
  check(same(indices) == DType::kInt64, "expected indices of type Long, got ", scalar_type_name(same(indices)));
  return same(values);
}

DType normalized(const Arg& input, const Arg& weight, const Arg& bias) {
  DType t = require_floating(same(input));
  for (const Arg* a : {&weight, &bias}) {
    if (a->is_none() || same(*a) == t) continue;
    check(same(*a) == DType::kFloat32 && item_size(t) == 2, "expected scalar type ", scalar_type_name(t), " but found ",
          scalar_type_name(same(*a)));
  }
  return t;
}

DType avg_pool(const Arg& input) {
  return same(input) == DType::kInt64 ? DType::kInt64 : require_floating(same(input));
}

DType batch_normalized(const Arg& input, const Arg& mean, const Arg& var, const Arg& weight, const Arg& bias) {
  const DType t = normalized(input, weight, bias);
  const Arg* first = nullptr;
  for (const Arg* a : {&mean, &var, &weight, &bias}) {
    if (a->is_none()) continue;
    if (!first) first = a;
    check(same(*a) == same(*first) && (same(*a) == t || (same(*a) == DType::kFloat32 && item_size(t) == 2)),
          "mixed dtype: expected weights and statistics of one dtype, ", scalar_type_name(t),
          item_size(t) == 2 ? " or Float" : "", ", got ", scalar_type_name(same(*first)), " and ",
          scalar_type_name(same(*a)));
  }
  return t;
}

DType rms_normalized(const Arg& input, const Arg& weight) {
  const DType t = require_inexact(same(input));
  check(weight.is_none() || is_complex(t) || !is_complex(same(weight)), "expected a real weight for an input of type ",
        scalar_type_name(t), ", got ", weight.is_none() ? "" : scalar_type_name(same(weight)));
  return t;
}

DType attention(const Arg& query, const Arg& key, const Arg& value, const Arg& mask) {
  const DType t = equal_floating(query, key, value);
  check(mask.is_none() || same(mask) == t || same(mask) == DType::kBool || same(mask) == DType::kFloat32,
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
        mask.is_none() ? "" : scalar_type_name(same(mask)), " and query.dtype: ", scalar_type_name(t), " instead.");
  return t;
}

DType resampled(const Arg& input) {
  return same(input) == DType::kUInt8 ? DType::kUInt8 : require_floating(same(input));
}

DType at_least_float32(const Arg& input) { return same(input) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

DType norm_weight(const Arg& input, const Arg& weight) { return weight.is_none() ? same(input) : same(weight); }

DType multi_margin_loss(const Arg& input, const Arg& target, const Arg& weight) {
  const DType t = multilabel_margin_loss(input, target);
  check(weight.is_none() || same(weight) == t, "expected weight to have input's dtype ", name(t), ", got ",
        weight.is_none() ? "" : name(same(weight)));
  return t;
}

DType multilabel_margin_loss(const Arg& input, const Arg& target) {
  const DType t = require_floating(same(input));
  check(same(target) == DType::kInt64, "expected target of int64, got ", name(same(target)));
  return t;
}

DType nll_loss(const Arg& input, const Arg& target, const Arg& weight) {
  DType t = require_floating(same(input));
  check(same(target) == DType::kInt64, "expected scalar type Long but found ", scalar_type_name(same(target)));
  check(weight.is_none() || same(weight) == t, "expected scalar type ", scalar_type_name(t), " but found ",
        weight.is_none() ? "" : scalar_type_name(same(weight)));
  return t;
}

namespace {

// The dtype of `stored`, after the check of an in-place operator with `computed` that it can be cast to.
DType written(DType stored, DType computed) {
  check(can_cast(computed, stored), "result type ", scalar_type_name(computed),
        " can't be cast to the desired output type ", scalar_type_name(stored));
  return stored;
}

}  // namespace

DType loss_of_input(const Arg& input, const Arg& target) {
  return require_floating(written(same(input), promote(input, target)));
}

DType loss_of_target(const Arg& input, const Arg& target, const Arg& weight) {
  require_floating(same(input));
  not_boolean(target);
  return written(same(target), floating_only(input, target, weight));
}

DType binary_cross_entropy(const Arg& input, const Arg& target, const Arg& weight) {
  check(same(input) == same(target), "Found dtype ", scalar_type_name(same(target)), " but expected ",
        scalar_type_name(same(input)));
  return require_floating(written(same(input), promote(input, weight)));
}

DType kl_div(const Arg& input, const Arg& target) {
  check(!is_integral(same(input)) && !is_integral(same(target)), "Integral inputs not supported.");
  return floating_only(input, target);
}

DType pad_edges(const Arg& input, std::string_view mode) {
  return mode == "circular" ? same(input) : not_boolean(input);
}

DType l1_loss(const Arg& input, const Arg& target) {
  not_boolean(input);
  not_boolean(target);
  return real_of(inexact_only(input, target));
}

DType optimizer_step_all(std::initializer_list<const Arg*> lists) {
  auto params = (*lists.begin())->list();
  for (const Arg* a : lists) {
    auto list = a->list();
    for (size_t i = 0; i < std::min(list.size(), params.size()); ++i) {
      DType t = params[i]->dtype;
      check(is_floating(t), "expected floating-point parameters, got ", name(t));
      check(list[i]->dtype == t, "expected a parameter's gradient and state to have its dtype ", name(t), ", got ",
            name(list[i]->dtype));
    }
  }
  return DType::kFloat32;
}

}  // namespace dtype_rules
}  // namespace tt
