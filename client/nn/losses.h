// Losses as modules.
#pragma once

#include "client/nn/functional.h"
#include "client/nn/module.h"

namespace teletensor::nn {

/// Declares a loss module with options.
#define TELETENSOR_LOSS(Name, Options, function)                                                                       \
  class Name##Impl : public Module {                                                                                   \
   public:                                                                                                             \
    using OptionsType = Options;                                                                                       \
    explicit Name##Impl(const Options& options = {}) : Module(#Name), options(options) {}                              \
    Tensor forward(const Tensor& input, const Tensor& target) { return functional::function(input, target, options); } \
    Options options;                                                                                                   \
  };                                                                                                                   \
  TELETENSOR_MODULE(Name)

using MSELossOptions = LossOptions;
using L1LossOptions = LossOptions;
TELETENSOR_LOSS(MSELoss, MSELossOptions, mse_loss);
TELETENSOR_LOSS(L1Loss, L1LossOptions, l1_loss);
TELETENSOR_LOSS(SmoothL1Loss, SmoothL1LossOptions, smooth_l1_loss);
TELETENSOR_LOSS(HuberLoss, HuberLossOptions, huber_loss);
TELETENSOR_LOSS(CrossEntropyLoss, CrossEntropyLossOptions, cross_entropy);
TELETENSOR_LOSS(NLLLoss, NLLLossOptions, nll_loss);
TELETENSOR_LOSS(BCELoss, BCELossOptions, binary_cross_entropy);
TELETENSOR_LOSS(BCEWithLogitsLoss, BCEWithLogitsLossOptions, binary_cross_entropy_with_logits);
TELETENSOR_LOSS(KLDivLoss, KLDivLossOptions, kl_div);
#undef TELETENSOR_LOSS

}  // namespace teletensor::nn
