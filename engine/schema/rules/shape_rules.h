// Functions for `shape:` in the operators' declarations. Declarations can call only these functions.
//
// Rules return Sizes (a new contiguous result), a Geometry (a view of the first tensor), or a vector of either (a
// Tensor[] result). All throw an Error of the kind that PyTorch raises.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "engine/schema/arg.h"
#include "engine/schema/op.h"

namespace tt::shape_rules {

// Wraps a negative dimension. Throws IndexError "Dimension out of range (expected to be in range of [-2, 1], but got
// 5)". A zero-dim tensor counts as one-dimensional.
int64_t wrap_dim(int64_t dim, int64_t ndim);

Sizes broadcast_sizes(SizesView a, SizesView b);
// Numbers and absent optionals are ignored.
Sizes broadcast_all(std::initializer_list<const Arg*> args);
template <typename... A>
Sizes broadcast(const A&... args) {
  return broadcast_all({&args...});
}
Sizes same(const Arg& tensor);  // a number has zero dimensions
Sizes sizes(SizesView given);   // returns `given`; throws on a negative size

// Creation.
Sizes arange(Scalar start, Scalar end, Scalar step);
Sizes steps(SymInt count);
Sizes eye(SymInt n, std::optional<SymInt> m);
Sizes literal(std::string_view bytes, SizesView size, DType dtype);
Sizes randint(SymInt low, SymInt high, SizesView size);
Sizes randperm(SymInt n);
Sizes multinomial(const Arg& input, SymInt num_samples, bool replacement);

// Pointwise operators with requirements beyond broadcasting.
Sizes assign(const Arg& input, const Arg& src);  // returns input's sizes; src must broadcast to them
Sizes masked_fill(const Arg& input, const Arg& mask, const Arg& value);
Sizes prelu(const Arg& input, const Arg& weight);
Sizes glu(const Arg& input, int64_t dim);
Sizes gelu(const Arg& input, std::string_view approximate);
Sizes polygamma(int64_t n, const Arg& input);
Sizes mvlgamma(const Arg& input, int64_t p);

// Views (view_rules.cc). Geometry::alias is false if a copy is needed.
using Geometries = std::vector<Geometry>;
Geometry alias(const Arg& input);
Geometry contiguous(const Arg& input);
Geometry view_as_real(const Arg& input);
Geometry view_as_complex(const Arg& input);
Geometry real(const Arg& input);
Geometry imag(const Arg& input);
Geometry view(const Arg& input, SizesView size);  // throws if a copy would be needed
Geometry reshape(const Arg& input, SizesView shape);
Geometry view_of_dtype(const Arg& input, DType dtype);
Geometry view_as(const Arg& input, const Arg& other);
Geometry reshape_as(const Arg& input, const Arg& other);
Geometry flatten(const Arg& input, int64_t start_dim, int64_t end_dim);
Geometry ravel(const Arg& input);  // a view of a contiguous tensor, else a copy
Geometry unflatten(const Arg& input, int64_t dim, SizesView sizes);
Geometry permute(const Arg& input, SizesView dims);
Geometry transpose(const Arg& input, int64_t dim0, int64_t dim1);
Geometry t(const Arg& input);
Geometry movedim(const Arg& input, SizesView source, SizesView destination);
Geometry squeeze(const Arg& input);
Geometry squeeze(const Arg& input, SizesView dims);
Geometry unsqueeze(const Arg& input, int64_t dim);
Geometry expand(const Arg& input, SizesView size);
Geometry expand_as(const Arg& input, const Arg& other);
Geometry narrow(const Arg& input, int64_t dim, SymInt start, SymInt length);
Geometry select(const Arg& input, int64_t dim, SymInt index);
Geometry slice(const Arg& input, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end, SymInt step);
Geometry diagonal(const Arg& input, SymInt offset, int64_t dim1, int64_t dim2);
Geometry unfold(const Arg& input, int64_t dimension, SymInt size, SymInt step);
Geometry as_strided(const Arg& input, SizesView size, SizesView stride, std::optional<SymInt> offset);
// The sizes of the pieces. Gradients use them too.
Sizes split_sizes(SizesView sizes, SymInt split_size, int64_t dim);
Sizes chunk_sizes(SizesView sizes, SymInt chunks, int64_t dim);
Sizes section_sizes(SizesView sizes, SymInt sections, int64_t dim);
Geometries split(const Arg& input, SymInt split_size, int64_t dim);
Geometries split(const Arg& input, SizesView split_sizes, int64_t dim);
Geometries chunk(const Arg& input, SymInt chunks, int64_t dim);
Geometries tensor_split(const Arg& input, SymInt sections, int64_t dim);
Geometries unbind(const Arg& input, int64_t dim);

// Fourier transforms, over at least one dimension, each of at least one point.
Sizes fft_c2c(const Arg& input, SizesView dim);
Sizes fft_r2c(const Arg& input, SizesView dim);
Sizes fft_c2r(const Arg& input, SizesView dim, SymInt last_size);

// Joining and rearranging (joining_rules.cc).
Sizes cat(const Arg& tensors, int64_t dim);
Sizes stack(const Arg& tensors, int64_t dim);
// A tensor's parts on all ranks of a group, concatenated; one rank's part; and the parts received from all ranks.
Sizes gathered(const Arg& input, int64_t dim, int64_t ranks);
Sizes scattered(const Arg& input, int64_t dim, int64_t ranks);
Sizes exchanged(const Arg& input, int64_t split_dim, int64_t concat_dim, int64_t ranks);
Sizes hstack(const Arg& tensors);
Sizes vstack(const Arg& tensors);
Sizes repeat(const Arg& input, SizesView repeats);
Sizes tile(const Arg& input, SizesView dims);
Sizes repeat_interleave(const Arg& input, SymInt repeats, std::optional<int64_t> dim);
Sizes flip(const Arg& input, SizesView dims);
Sizes roll(const Arg& input, SizesView shifts, SizesView dims);
Sizes pixel_shuffle(const Arg& input, SymInt factor);
Sizes pixel_unshuffle(const Arg& input, SymInt factor);
Sizes channel_shuffle(const Arg& input, SymInt groups);
Sizes require_matrices(const Arg& input);  // returns the input's sizes; requires at least two dimensions
Sizes diag(const Arg& input, SymInt diagonal);
Sizes diag_embed(const Arg& input, SymInt offset, int64_t dim1, int64_t dim2);
Sizes diagflat(const Arg& input, SymInt offset);

// Indexing, sorting and scans (index_rules.cc). Kernels check the values of the indices.
Sizes gather(const Arg& input, int64_t dim, const Arg& index);
Sizes scatter(const Arg& input, int64_t dim, const Arg& index);
Sizes scatter(const Arg& input, int64_t dim, const Arg& index, const Arg& src);
Sizes index_select(const Arg& input, int64_t dim, const Arg& index);
Sizes index_add(const Arg& input, int64_t dim, const Arg& index, const Arg& source);
Sizes index_fill(const Arg& input, int64_t dim, const Arg& index);
Sizes index(const Arg& input, const Arg& indices);
Sizes index_put(const Arg& input, const Arg& indices, const Arg& values);
Sizes take_along_dim(const Arg& input, const Arg& indices, int64_t dim);
Sizes searchsorted(const Arg& sorted_sequence, const Arg& input);
Sizes require_dim(const Arg& input, int64_t dim);  // returns the input's sizes; requires that `dim` exists
Sizes topk(const Arg& input, SymInt k, int64_t dim);
Sizes kthvalue(const Arg& input, SymInt k, int64_t dim, bool keepdim);

// Reductions. If no dimensions or an empty list are given, all dimensions are reduced.
using Dims = std::optional<SizesView>;
Sizes reduced(const Arg& input, Dims dims = std::nullopt, bool keepdim = false);
Sizes reduced_named(const Arg& input, Dims dims, bool keepdim);    // an empty list reduces nothing
Sizes reduced_one_dim(const Arg& input, Dims dims, bool keepdim);  // `dims` has at most one entry
// Rule of reductions without an identity, which require at least one element.
Sizes reduced_nonempty(const Arg& input, Dims dims = std::nullopt, bool keepdim = false);
Sizes reduced_nonempty(const Arg& input, std::optional<SymInt> dim, bool keepdim);
inline Sizes reduced_nonempty(const Arg& input, SymInt dim, bool keepdim) {
  return reduced_nonempty(input, std::optional<SymInt>(dim), keepdim);
}
Sizes norm_named(const Arg& input, std::string_view p, Dims dims, bool keepdim);
Sizes vector_norm(const Arg& input, double ord, Dims dims, bool keepdim);
Sizes renorm(const Arg& input, const Scalar& p, int64_t dim, const Scalar& maxnorm);
Sizes norm_except_dim(const Arg& v, int64_t dim);  // reduces all dimensions but `dim`, or all of them if it is -1
Sizes hash_tensor(const Arg& input, Dims dims, bool keepdim, int64_t mode);

// Products.
Sizes matmul(const Arg& input, const Arg& other);
Sizes mm(const Arg& input, const Arg& other);
Sizes bmm(const Arg& input, const Arg& other);
Sizes mv(const Arg& matrix, const Arg& vector);
Sizes dot(const Arg& input, const Arg& other);
Sizes addmm(const Arg& input, const Arg& mat1, const Arg& mat2);
Sizes addmv(const Arg& input, const Arg& mat, const Arg& vec);
Sizes baddbmm(const Arg& input, const Arg& batch1, const Arg& batch2);
Sizes addbmm(const Arg& input, const Arg& batch1, const Arg& batch2);
Sizes outer(const Arg& input, const Arg& other);
Sizes addr(const Arg& input, const Arg& vec1, const Arg& vec2);
Sizes kron(const Arg& input, const Arg& other);
Sizes bilinear(const Arg& input1, const Arg& input2, const Arg& weight, const Arg& bias);
Sizes inner(const Arg& input, const Arg& other);
Sizes linear(const Arg& input, const Arg& weight, const Arg& bias);
Sizes fused_linear(const Arg& input, const Arg& weight, const Arg& bias, const Arg& added, std::string_view activation);
// Rules of products of 8-bit integers, and of weights of 8 and 4 bits with floating-point rows.
Sizes int8_linear(const Arg& input, const Arg& weight);
Sizes int8_convolution(const Arg& input, const Arg& weight, SizesView stride, SizesView padding, SizesView dilation,
                       SymInt groups);
Sizes int4_pack(const Arg& weight);
Sizes int4_weight_mm(const Arg& input, const Arg& weight, SymInt group_size, const Arg& scales_and_zeros);
// Rule of products of scaled 8-bit matrices. Checks PyTorch's requirements and, on a GPU, those of cuBLASLt.
Sizes scaled_mm(const Arg& input, const Arg& mat2, const Arg& scale_a, const Arg& scale_b, const Arg& bias,
                const Arg& scale_result, std::optional<DType> out_dtype);

// Factorisations of the last two dimensions; the other dimensions are a batch (linalg_rules.cc).
Sizes square(const Arg& a);        // the input's sizes
Sizes matrix_batch(const Arg& a);  // the sizes without the last two dimensions
Sizes square_batch(const Arg& a);
Sizes matrix_rank_sizes(const Arg& a);  // min(rows, columns) of each matrix
Sizes eigenvalues(const Arg& a);
Sizes eigenvectors(const Arg& a, std::string_view triangle, bool vectors);
Sizes lu_permutation(const Arg& pivots, SymInt rows);
Sizes lu_batch(const Arg& a, const Arg& lu, const Arg& pivots);  // returns the batch sizes
Sizes solve(const Arg& a, const Arg& b);
Sizes lu_solved(const Arg& a, const Arg& b, const Arg& lu, const Arg& pivots);
Sizes qr_q(const Arg& a, std::string_view mode);
Sizes qr_r(const Arg& a, std::string_view mode);
Sizes svd_u(const Arg& a, bool full_matrices, bool vectors);
Sizes svd_vh(const Arg& a, bool full_matrices, bool vectors);
Sizes pseudo_inverse(const Arg& a, const Arg& result);

// Vectors.
Sizes trace(const Arg& input);
Sizes cross(const Arg& input, const Arg& other, int64_t dim);
Sizes cdist(const Arg& x1, const Arg& x2, double p);
Sizes distance(const Arg& input, const Arg& other);
Sizes pairwise_distance(const Arg& x1, const Arg& x2, bool keepdim);  // without the last dimension
Sizes diff(const Arg& input, SymInt n, int64_t dim);
Sizes trapezoid(const Arg& y, const Arg& x, double dx, int64_t dim);
Sizes cumulative_trapezoid(const Arg& y, const Arg& x, double dx, int64_t dim);

// Convolutions. The first four require a batch. conv and conv_transpose also accept unbatched inputs, which have a
// channel dimension and `space` spatial dimensions.
Sizes convolution(const Arg& input, const Arg& weight, const Arg& bias, SizesView stride, SizesView padding,
                  SizesView dilation, SymInt groups);
Sizes convolution_input(const Arg& grad, const Arg& weight, SizesView size, SizesView stride, SizesView padding,
                        SizesView dilation, SymInt groups);
Sizes convolution_weight(const Arg& grad, const Arg& input, SizesView size, SizesView stride, SizesView padding,
                         SizesView dilation, SymInt groups);
Sizes fused_convolution(const Arg& input, const Arg& weight, const Arg& bias, SizesView stride, SizesView padding,
                        SizesView dilation, SymInt groups, const Arg& running_mean, const Arg& running_var,
                        const Arg& norm_weight, const Arg& norm_bias, const Arg& added, std::string_view activation);
Sizes conv(const Arg& input, const Arg& weight, const Arg& bias, SizesView stride, SizesView padding,
           SizesView dilation, SymInt groups, int64_t space);
Sizes conv_tbc(const Arg& input, const Arg& weight, const Arg& bias, SymInt pad);
Sizes conv_transpose(const Arg& input, const Arg& weight, const Arg& bias, SizesView stride, SizesView padding,
                     SizesView output_padding, SymInt groups, SizesView dilation, int64_t space);

// Pooling over the last two dimensions.
Sizes max_pool2d(const Arg& input, SizesView kernel, Dims stride, SizesView padding, SizesView dilation,
                 bool ceil_mode);
Sizes max_pool2d_backward(const Arg& grad, const Arg& indices, SizesView size);
Sizes avg_pool2d(const Arg& input, SizesView kernel, Dims stride, SizesView padding, bool ceil_mode,
                 std::optional<SymInt> divisor_override);
Sizes avg_pool2d_backward(const Arg& grad, SizesView size, SizesView kernel, Dims stride, SizesView padding,
                          bool ceil_mode);
Sizes adaptive_pool2d(const Arg& input, SizesView output_size);
Sizes adaptive_pool2d_backward(const Arg& grad, SizesView size);

// Pooling over three dimensions, extraction of patches, and resampling.
Sizes pool3d(const Arg& input, SizesView kernel, Dims stride, SizesView padding, SizesView dilation, bool ceil_mode);
Sizes pool3d(const Arg& input, SizesView kernel, Dims stride, SizesView padding, bool ceil_mode);
Sizes adaptive_pool3d(const Arg& input, SizesView output_size);
Sizes im2col(const Arg& input, SizesView kernel, SizesView dilation, SizesView padding, SizesView stride);
Sizes col2im(const Arg& input, SizesView size, SizesView kernel, SizesView dilation, SizesView padding,
             SizesView stride);
Sizes interpolate(const Arg& input, SizesView size, std::string_view mode, bool align_corners,
                  absl::Span<const double> scale_factors);

// Normalisations.
Sizes batch_norm(const Arg& input, const Arg& running_mean, const Arg& running_var, const Arg& weight, const Arg& bias,
                 bool training);
Sizes batch_norm(const Arg& input, const Arg& mean, const Arg& rstd, const Arg& weight);  // rule of the gradient
Sizes channels(const Arg& input);
Sizes layer_norm(const Arg& input, SizesView normalized_shape, const Arg& weight, const Arg& bias = Arg());
Sizes rows(const Arg& input, SizesView normalized_shape);  // one number per normalised row
Sizes group_norm(const Arg& input, SymInt num_groups, const Arg& weight, const Arg& bias = Arg());
Sizes groups(const Arg& input, SymInt num_groups);
Sizes normalize(const Arg& input, double p, SizesView dim);

// Other layers, and losses.
Sizes scalar();
Sizes gradient_of(const Arg& grad, Sizes result);  // checks that a gradient has its result's sizes
Sizes dropout(const Arg& input, double p);
Sizes embedding(const Arg& weight, const Arg& indices);
Sizes embedding_backward(const Arg& grad, const Arg& indices, SymInt num_weights);
Sizes one_hot(const Arg& input, SymInt num_classes);
Sizes pad(const Arg& input, SizesView pad);
Sizes pad_edges(const Arg& input, SizesView pad, std::string_view mode);
Sizes pad_edges_backward(const Arg& grad, SizesView size, SizesView pad, std::string_view mode);
Sizes cosine_similarity(const Arg& x1, const Arg& x2, int64_t dim);
Sizes nll_loss(const Arg& input, const Arg& target, const Arg& weight, std::string_view reduction,
               double label_smoothing = 0);
Sizes loss(const Arg& input, const Arg& target, std::string_view reduction);
Sizes loss(const Arg& input, const Arg& target, const Arg& other, std::string_view reduction);
Sizes margin_ranking_loss(const Arg& input1, const Arg& input2, const Arg& target, std::string_view reduction);
Sizes cosine_embedding_loss(const Arg& input1, const Arg& input2, const Arg& target, std::string_view reduction);
Sizes triplet_margin_loss(const Arg& anchor, const Arg& positive, const Arg& negative, double margin,
                          std::string_view reduction);
Sizes smooth_loss(const Arg& input, const Arg& target, std::string_view reduction, double beta, bool zero_allowed);
Sizes binary_cross_entropy(const Arg& input, const Arg& target, const Arg& weight, std::string_view reduction);
Sizes binary_cross_entropy_with_logits(const Arg& input, const Arg& target, const Arg& weight, const Arg& pos_weight,
                                       std::string_view reduction);
Sizes kl_div(const Arg& input, const Arg& target, std::string_view reduction);
Sizes multi_margin_loss(const Arg& input, const Arg& target, int64_t p, const Arg& weight, std::string_view reduction);
Sizes multilabel_margin_loss(const Arg& input, const Arg& target, std::string_view reduction);
Sizes fake_quantize_channels(const Arg& input, const Arg& scale, const Arg& zero_point, int64_t axis, int64_t quant_min,
                             int64_t quant_max);

// Recurrent layers (hx: a list of two states, or one state) and attention (recurrent_rules.cc).
Sizes recurrent(const Arg& input, const Arg& hx, const Arg& params, SizesView batch_sizes, int64_t num_layers,
                bool bidirectional, bool batch_first, SymInt gates);
Sizes recurrent_state(const Arg& hx, int64_t which);
Sizes recurrent_cell(const Arg& input, const Arg& hx, const Arg& w_ih, const Arg& w_hh, SymInt gates);
Sizes attention(const Arg& query, const Arg& key, const Arg& value, const Arg& mask);
Sizes attention_rows(const Arg& query, const Arg& key, const Arg& value, const Arg& mask);  // one number per row
Sizes attention_gradient(const Arg& grad, const Arg& query, const Arg& key, const Arg& value, const Arg& mask,
                         const Arg& output, const Arg& logsumexp);

// Components of jagged nested tensors (nested_rules.cc).
Sizes jagged_to_padded(const Arg& values, const Arg& offsets, const Arg& lengths, SymInt length);
Sizes padded_to_jagged(const Arg& padded, const Arg& offsets, const Arg& lengths, SymInt total);
Sizes jagged_expand(const Arg& input, const Arg& offsets, const Arg& lengths, SymInt total);
Sizes jagged_reduce(const Arg& values, const Arg& offsets, const Arg& lengths, std::string_view reduce);
Sizes jagged_softmax(const Arg& values, const Arg& offsets, const Arg& lengths);
Sizes jagged_attention(const Arg& query, const Arg& key, const Arg& value, const Arg& query_offsets,
                       const Arg& query_lengths, const Arg& key_offsets, const Arg& key_lengths);
Sizes jagged_attention_rows(const Arg& query);  // one number per token and head
Sizes jagged_attention_gradient(const Arg& grad, const Arg& query, const Arg& key, const Arg& value,
                                const Arg& query_offsets, const Arg& query_lengths, const Arg& key_offsets,
                                const Arg& key_lengths, const Arg& output, const Arg& logsumexp);

// Sampling by coordinates, histograms and quantiles, scattering, sequences (sampling_rules.cc).
Sizes grid_sample(const Arg& input, const Arg& grid, std::string_view mode, std::string_view padding_mode);
Sizes affine_grid(const Arg& theta, SizesView size);
Sizes grid_taps(const Arg& grid, SizesView size, std::string_view mode, std::string_view padding_mode);
Sizes grid_tap_weights(const Arg& grid, SizesView size, std::string_view mode, std::string_view padding_mode,
                       SizesView order);
Sizes weighted_gather(const Arg& input, const Arg& index, const Arg& weight);
Sizes weighted_gather_input_grad(const Arg& values, const Arg& index, const Arg& weight, SymInt length);
Sizes weighted_gather_weight_grad(const Arg& values, const Arg& input, const Arg& index);
Sizes scatter_reduce(const Arg& input, int64_t dim, const Arg& index, const Arg& src, std::string_view reduce);
Sizes histogram(const Arg& input, SymInt bins, double min, double max);
Sizes quantile(const Arg& input, const Arg& q, std::optional<int64_t> dim, bool keepdim,
               std::string_view interpolation);
Sizes cov(const Arg& input, const Arg& fweights, const Arg& aweights);
Sizes corrcoef(const Arg& input);
Sizes vander(const Arg& x, std::optional<SymInt> columns);
Sizes put(const Arg& input, const Arg& index, const Arg& source);
Sizes rot90(const Arg& input, int64_t k, SizesView dims);
Sizes geometric(const Arg& input, double p);
Sizes ctc_loss(const Arg& log_probs, const Arg& targets, SizesView input_lengths, SizesView target_lengths,
               int64_t blank);
Sizes ctc_alphas(const Arg& log_probs, SizesView target_lengths);
Sizes ctc_gradient(const Arg& grad, const Arg& log_probs, const Arg& targets, SizesView input_lengths,
                   SizesView target_lengths, const Arg& loss, const Arg& log_alpha, int64_t blank);

// Checks of operators without results.
struct Checked {};
inline void add(Inference*, DType, Checked) {}
// Components of sparse tensors (sparse_rules.cc): they check sizes and index dtypes. Kernels check the indices.
Sizes sparse_check_coo(const Arg& indices, const Arg& values, SizesView size);
Sizes sparse_check_compressed(const Arg& compressed, const Arg& plain, SymInt compressed_size, SymInt plain_size);
Sizes sparse_compress(const Arg& index, SymInt size);
Sizes sparse_expand(const Arg& compressed, SymInt nnz);
Sizes sparse_transposed(const Arg& compressed, const Arg& plain, SymInt size);
Sizes sparse_scatter(const Arg& indices, const Arg& values, SizesView size);
Sizes sparse_gather(const Arg& input, const Arg& indices);
Sizes sparse_csr_mm(const Arg& crow, const Arg& col, const Arg& values, const Arg& other);
Sizes sparse_csr_mm_transposed(const Arg& crow, const Arg& col, const Arg& values, const Arg& other, SymInt columns);
Sizes sparse_csr_sddmm(const Arg& crow, const Arg& col, const Arg& input, const Arg& other);
Sizes sparse_csr_mm_extremum(const Arg& crow, const Arg& col, const Arg& values, const Arg& other);
Sizes sparse_bsr_mm(const Arg& crow, const Arg& col, const Arg& values, const Arg& other);
Sizes sparse_csr_sampled_matmul(const Arg& crow1, const Arg& col1, const Arg& values1, const Arg& crow2,
                                const Arg& col2, const Arg& values2, const Arg& crow, const Arg& col, SymInt columns);
Sizes sparse_csr_triangular_solve(const Arg& crow, const Arg& col, const Arg& values, const Arg& other);
Sizes sparse_softmax(const Arg& values, const Arg& group, SymInt groups);
Checked sparse_adam_step(const Arg& param, const Arg& exp_avg, const Arg& exp_avg_sq, const Arg& rows, const Arg& grad,
                         SymInt step);
Sizes sparse_semi_values(const Arg& input);
Sizes sparse_semi_meta(const Arg& input);
Sizes sparse_semi_expand(const Arg& values, const Arg& meta);
Sizes sparse_semi_select(const Arg& input, const Arg& meta);
Sizes sparse_semi_mm(const Arg& values, const Arg& meta, const Arg& other);
// An observer's minima, maxima, scales and zero points: one number each, or one per entry of `ch_axis` if `per_row`.
Checked observe_moving_average(const Arg& input, const Arg& observer_on, const Arg& running_min, const Arg& running_max,
                               const Arg& scale, const Arg& zero_point, int64_t quant_min, int64_t quant_max,
                               int64_t ch_axis, bool per_row);
// The fused optimizer steps: every list in use has one entry per parameter.
// Of an optimizer step whose numbers are in a tensor: `count` float64 numbers on the CPU.
Checked step_options(const Arg& options, SymInt count);
Checked sgd_step(const Arg& params, const Arg& grads, const Arg& momentum_buffers, double momentum,
                 const Arg& found_inf);
Checked adam_step(const Arg& params, const Arg& grads, const Arg& exp_avgs, const Arg& exp_avg_sqs,
                  const Arg& max_exp_avg_sqs, bool amsgrad, int64_t step, const Arg& found_inf, const Arg& steps);
// Gradient scaling: found_inf, scales and counters are one number on the device of the gradients.
Checked amp_unscale(const Arg& grads, const Arg& found_inf, const Arg& inv_scale);
Checked amp_update_scale(const Arg& scale, const Arg& growth_tracker, const Arg& found_inf);

// The generated infer functions call these functions to add one result (or a list of results).
void add(Inference* out, DType dtype, Sizes sizes);
void add(Inference* out, DType dtype, Geometry geometry);
void add(Inference* out, DType dtype, const std::vector<Sizes>& list);
void add(Inference* out, DType dtype, const std::vector<Geometry>& list);
void add_dynamic(Inference* out, DType dtype);

}  // namespace tt::shape_rules
