// Modules, losses and optimizers, compared with results of PyTorch (record.py).
#include <fstream>
#include <functional>
#include <map>
#include <optional>

#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const std::string kData = TT_API_TEST_DATA;

void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  if (got.dtype() != expected.dtype()) ADD_FAILURE() << what << ": the dtypes differ";
  if (expected.numel() == 0) return;
  const float scale = std::max(1.0f, expected.to(kFloat).abs().max().item<float>());
  EXPECT_THAT(got.data<float>(), Pointwise(FloatNear(2e-5f * scale), expected.data<float>())) << what;
}

// How a module is made and called. Results are the tensors of PyTorch's, in order.
struct Case {
  std::shared_ptr<nn::Module> module;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> forward;
};

template <typename M>
Case one_input(M holder) {
  return {holder.ptr(), [holder](const std::vector<Tensor>& in) { return std::vector<Tensor>{holder(in[0])}; }};
}
template <typename M>
Case two_inputs(M holder) {
  return {holder.ptr(), [holder](const std::vector<Tensor>& in) { return std::vector<Tensor>{holder(in[0], in[1])}; }};
}
Case lstm(nn::LSTM holder) {
  return {holder.ptr(), [holder](const std::vector<Tensor>& in) {
            const auto [output, states] = holder(in[0]);
            return std::vector<Tensor>{output, std::get<0>(states), std::get<1>(states)};
          }};
}
template <typename M>
Case three_inputs(M holder) {
  return {holder.ptr(),
          [holder](const std::vector<Tensor>& in) { return std::vector<Tensor>{holder(in[0], in[1], in[2])}; }};
}
Case lstm_cell(nn::LSTMCell holder) {
  return {holder.ptr(), [holder](const std::vector<Tensor>& in) {
            const auto [h, c] = holder(in[0]);
            return std::vector<Tensor>{h, c};
          }};
}
template <typename M>
Case recurrent(M holder) {
  return {holder.ptr(), [holder](const std::vector<Tensor>& in) {
            const auto [output, state] = holder(in[0]);
            return std::vector<Tensor>{output, state};
          }};
}

using Cases = std::map<std::string, std::function<Case()>>;

Cases pooling_cases() {
  using namespace nn;
  return {
      {"MaxPool1d", [] { return one_input(MaxPool1d(MaxPool1dOptions(3).stride(2).padding(1))); }},
      {"AvgPool1d", [] { return one_input(AvgPool1d(AvgPool1dOptions(2).ceil_mode(true))); }},
      {"MaxPool3d", [] { return one_input(MaxPool3d(2)); }},
      {"AvgPool3d", [] { return one_input(AvgPool3d(AvgPool3dOptions(2).stride(1))); }},
      {"AdaptiveAvgPool1d", [] { return one_input(AdaptiveAvgPool1d(3)); }},
      {"AdaptiveAvgPool3d",
       [] {
         return one_input(AdaptiveAvgPool3d(AdaptiveAvgPool3dOptions({1, 2, 3})));
       }},
      {"AdaptiveMaxPool1d", [] { return one_input(AdaptiveMaxPool1d(3)); }},
      {"AdaptiveMaxPool2d", [] { return one_input(AdaptiveMaxPool2d(2)); }},
      {"AdaptiveMaxPool3d", [] { return one_input(AdaptiveMaxPool3d(2)); }},
      {"LPPool1d", [] { return one_input(LPPool1d(LPPool1dOptions(2, 3).stride(2))); }},
      {"LPPool2d", [] { return one_input(LPPool2d(LPPool2dOptions(3, 2))); }},
      {"Unfold",
       [] {
         return one_input(Unfold(UnfoldOptions({2, 3}).padding(1).stride(2)));
       }},
      {"Fold",
       [] {
         return one_input(Fold(FoldOptions({4, 5}, {2, 2})));
       }},
      {"UpsampleNearest", [] { return one_input(Upsample(UpsampleOptions().scale_factor(std::vector<double>{2}))); }},
      {"UpsampleBilinear",
       [] {
         return one_input(
             Upsample(UpsampleOptions().size(std::vector<int64_t>{5, 7}).mode("bilinear").align_corners(true)));
       }},
      {"UpsampleBicubic",
       [] {
         return one_input(Upsample(UpsampleOptions().scale_factor(std::vector<double>{1.5, 2.5}).mode("bicubic")));
       }},
      {"UpsampleLinear",
       [] { return one_input(Upsample(UpsampleOptions().scale_factor(std::vector<double>{1.7}).mode("linear"))); }},
      {"ReflectionPad1d",
       [] {
         return one_input(ReflectionPad1d(ReflectionPad1dOptions({2, 1})));
       }},
      {"ReflectionPad2d",
       [] {
         return one_input(ReflectionPad2d(ReflectionPad2dOptions({1, 2, 0, 1})));
       }},
      {"ReplicationPad3d", [] { return one_input(ReplicationPad3d(1)); }},
      {"ZeroPad2d",
       [] {
         return one_input(ZeroPad2d(ZeroPad2dOptions({1, -1, 2, 0})));
       }},
      {"ConstantPad1d",
       [] {
         return one_input(ConstantPad1d(ConstantPad1dOptions({1, 2}, 3.5)));
       }},
      {"PixelShuffle", [] { return one_input(PixelShuffle(2)); }},
      {"PixelUnshuffle", [] { return one_input(PixelUnshuffle(2)); }},
  };
}

Cases other_cases() {
  using namespace nn;
  return {
      {"InstanceNorm1d", [] { return one_input(InstanceNorm1d(InstanceNormOptions(3).affine(true))); }},
      {"InstanceNorm2d", [] { return one_input(InstanceNorm2d(InstanceNormOptions(2).track_running_stats(true))); }},
      {"LocalResponseNorm", [] { return one_input(LocalResponseNorm(LocalResponseNormOptions(3).alpha(0.2))); }},
      {"Bilinear", [] { return two_inputs(Bilinear(3, 4, 2)); }},
      {"CosineSimilarity", [] { return two_inputs(CosineSimilarity(CosineSimilarityOptions().dim(1))); }},
      {"PairwiseDistance", [] { return two_inputs(PairwiseDistance(PairwiseDistanceOptions().keepdim(true))); }},
      {"Softmin", [] { return one_input(Softmin(1)); }},
      {"Softshrink", [] { return one_input(Softshrink(0.3)); }},
      {"Hardshrink", [] { return one_input(Hardshrink(0.3)); }},
      {"Threshold", [] { return one_input(Threshold(0.1, 20)); }},
      {"Softmax2d", [] { return one_input(Softmax2d()); }},
      {"RNNCell", [] { return one_input(RNNCell(RNNCellOptions(3, 4).nonlinearity("relu"))); }},
      {"GRUCell", [] { return one_input(GRUCell(3, 4)); }},
      {"LSTMCell", [] { return lstm_cell(LSTMCell(3, 4)); }},
      {"GRUCellUnbatched", [] { return one_input(GRUCell(3, 4)); }},
      {"TransformerDecoderLayer",
       [] {
         return two_inputs(TransformerDecoderLayer(
             TransformerDecoderLayerOptions(6, 2).dim_feedforward(8).dropout(0).batch_first(true)));
       }},
      {"TransformerEncoder",
       [] {
         const auto layer = TransformerEncoderLayerOptions(6, 2).dim_feedforward(8).dropout(0).batch_first(true);
         return one_input(TransformerEncoder(TransformerEncoderOptions(layer, 2).norm(true)));
       }},
      {"Transformer",
       [] {
         return two_inputs(Transformer(TransformerOptions(6, 2)
                                           .num_encoder_layers(1)
                                           .num_decoder_layers(2)
                                           .dim_feedforward(8)
                                           .dropout(0)
                                           .batch_first(true)
                                           .norm_first(true)));
       }},
      {"PoissonNLLLoss", [] { return two_inputs(PoissonNLLLoss(PoissonNLLLossOptions().full(true))); }},
      {"HingeEmbeddingLoss", [] { return two_inputs(HingeEmbeddingLoss(HingeEmbeddingLossOptions().margin(0.7))); }},
      {"SoftMarginLoss", [] { return two_inputs(SoftMarginLoss()); }},
      {"MultiMarginLoss", [] { return two_inputs(MultiMarginLoss(MultiMarginLossOptions().p(2).margin(0.8))); }},
      {"CosineEmbeddingLoss",
       [] { return three_inputs(CosineEmbeddingLoss(CosineEmbeddingLossOptions().margin(0.1))); }},
      {"MarginRankingLoss", [] { return three_inputs(MarginRankingLoss(MarginRankingLossOptions().margin(0.1))); }},
      {"TripletMarginLoss", [] { return three_inputs(TripletMarginLoss(TripletMarginLossOptions().swap(true))); }},
  };
}

Cases cases() {
  using namespace nn;
  return {
      {"Linear", [] { return one_input(Linear(4, 3)); }},
      {"LinearNoBias", [] { return one_input(Linear(LinearOptions(4, 3).bias(false))); }},
      {"Conv1d", [] { return one_input(Conv1d(Conv1dOptions(2, 4, 3).stride(2).padding(1))); }},
      {"Conv2d",
       [] {
         return one_input(Conv2d(Conv2dOptions(2, 4, 3).stride(2).padding({1, 0}).groups(2)));
       }},
      {"Conv3d", [] { return one_input(Conv3d(1, 2, 2)); }},
      {"ConvTranspose2d",
       [] {
         return one_input(ConvTranspose2d(ConvTranspose2dOptions(2, 3, 3).stride(2).padding(1).output_padding(1)));
       }},
      {"BatchNorm1d", [] { return one_input(BatchNorm1d(3)); }},
      {"BatchNorm2d", [] { return one_input(BatchNorm2d(BatchNorm2dOptions(3))); }},
      {"LayerNorm",
       [] {
         return one_input(LayerNorm(LayerNormOptions({3, 4})));
       }},
      {"GroupNorm", [] { return one_input(GroupNorm(2, 4)); }},
      {"Embedding", [] { return one_input(Embedding(EmbeddingOptions(6, 3).padding_idx(1))); }},
      {"EmbeddingBag", [] { return two_inputs(EmbeddingBag(6, 3)); }},
      {"EmbeddingBagSum", [] { return one_input(EmbeddingBag(EmbeddingBagOptions(6, 3).mode("sum"))); }},
      {"ReLU", [] { return one_input(ReLU()); }},
      {"GELU", [] { return one_input(GELU()); }},
      {"GELUTanh", [] { return one_input(GELU(GELUOptions("tanh"))); }},
      {"SiLU", [] { return one_input(SiLU()); }},
      {"LeakyReLU", [] { return one_input(LeakyReLU(0.2)); }},
      {"ELU", [] { return one_input(ELU()); }},
      {"PReLU", [] { return one_input(PReLU()); }},
      {"Softplus", [] { return one_input(Softplus()); }},
      {"Sigmoid", [] { return one_input(Sigmoid()); }},
      {"Tanh", [] { return one_input(Tanh()); }},
      {"Softmax", [] { return one_input(Softmax(1)); }},
      {"LogSoftmax", [] { return one_input(LogSoftmax(1)); }},
      {"MaxPool2d", [] { return one_input(MaxPool2d(MaxPool2dOptions(2).stride(1))); }},
      {"AvgPool2d", [] { return one_input(AvgPool2d(AvgPool2dOptions(3).padding(1))); }},
      {"AdaptiveAvgPool2d",
       [] {
         return one_input(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({2, 3})));
       }},
      {"Flatten", [] { return one_input(Flatten()); }},
      {"Sequential", [] { return one_input(Sequential(Linear(4, 5), ReLU(), Linear(5, 2))); }},
      {"LSTM", [] { return lstm(LSTM(LSTMOptions(3, 4).num_layers(2).bidirectional(true))); }},
      {"GRU", [] { return recurrent(GRU(GRUOptions(3, 4).batch_first(true))); }},
      {"RNN", [] { return recurrent(RNN(RNNOptions(3, 4).nonlinearity("relu"))); }},
      {"LSTMUnbatched", [] { return lstm(LSTM(3, 4)); }},
      {"MultiheadAttention",
       [] {
         MultiheadAttention m(6, 2);
         return Case{m.ptr(), [m](const std::vector<Tensor>& in) {
                       const auto [output, weights] = m(in[0], in[1], in[2]);
                       return std::vector<Tensor>{output, weights};
                     }};
       }},
      {"TransformerEncoderLayer",
       [] {
         return one_input(TransformerEncoderLayer(
             TransformerEncoderLayerOptions(6, 2).dim_feedforward(8).dropout(0).batch_first(true)));
       }},
      {"TransformerEncoderLayerNormFirst",
       [] {
         return one_input(TransformerEncoderLayer(
             TransformerEncoderLayerOptions(6, 2).dim_feedforward(8).dropout(0).activation("gelu").norm_first(true)));
       }},
      {"MSELoss", [] { return two_inputs(MSELoss()); }},
      {"L1Loss", [] { return two_inputs(L1Loss(L1LossOptions().reduction("sum"))); }},
      {"SmoothL1Loss", [] { return two_inputs(SmoothL1Loss()); }},
      {"HuberLoss", [] { return two_inputs(HuberLoss(HuberLossOptions().delta(0.5))); }},
      {"CrossEntropyLoss", [] { return two_inputs(CrossEntropyLoss(CrossEntropyLossOptions().label_smoothing(0.1))); }},
      {"NLLLoss", [] { return two_inputs(NLLLoss()); }},
      {"BCELoss", [] { return two_inputs(BCELoss()); }},
      {"BCEWithLogitsLoss",
       [] {
         return two_inputs(BCEWithLogitsLoss(BCEWithLogitsLossOptions().pos_weight(tensor({2.0, 1.0, 0.5}))));
       }},
      {"KLDivLoss", [] { return two_inputs(KLDivLoss(KLDivLossOptions().reduction("batchmean"))); }},
  };
}

TEST_F(Api, ModulesGivePyTorchsResults) {
  const Value recorded = load(kData + "/modules.pt");
  Cases makers = cases();
  makers.merge(pooling_cases());
  makers.merge(other_cases());
  ASSERT_EQ(makers.size(), recorded.to_dict().size());
  for (const auto& [name, make] : makers) {
    SCOPED_TRACE(name);
    const Value& expected = recorded[name];
    const Case c = make();
    OrderedDict<Tensor> state;
    for (const auto& [key, tensor] : expected["state"].to_dict()) {
      if (key.to_string() != "pos_weight") state.insert(key.to_string(), tensor.to_tensor());
    }
    c.module->load_state_dict(state);
    std::vector<Tensor> inputs;
    for (const Value& input : expected["inputs"].to_list()) {
      inputs.push_back(input.to_tensor().clone());
      if (inputs.back().is_floating_point()) inputs.back().set_requires_grad(true);
    }
    const std::vector<Tensor> outputs = c.forward(inputs);
    const Value::List& results = expected["outputs"].to_list();
    ASSERT_EQ(outputs.size(), results.size());
    Tensor loss = zeros({});
    for (size_t i = 0; i < outputs.size(); ++i) {
      expect_close(outputs[i].detach(), results[i].to_tensor(), "output " + std::to_string(i));
      if (outputs[i].requires_grad()) loss = loss + (outputs[i] * outputs[i]).sum();
    }
    loss.backward();
    const OrderedDict<Tensor> parameters = c.module->named_parameters();
    ASSERT_EQ(parameters.size(), expected["grads"].to_dict().size());
    for (const auto& [key, gradient] : expected["grads"].to_dict()) {
      expect_close(parameters[key.to_string()].grad(), gradient.to_tensor(), key.to_string());
    }
    if (expected["input_grad"].is_tensor()) {
      expect_close(inputs[0].grad(), expected["input_grad"].to_tensor(), "gradient of the input");
    }
    for (const auto& [key, tensor] : c.module->state_dict()) {
      expect_close(tensor, expected["state_after"][key].to_tensor(), key + " afterwards");
    }
  }
}

std::map<std::string, std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>> optimizers() {
  using namespace optim;
  using Params = std::vector<Tensor>;
  return {
      {"SGD", [](Params p) { return std::make_unique<SGD>(p, 0.1); }},
      {"SGDMomentum",
       [](Params p) {
         return std::make_unique<SGD>(p, SGDOptions(0.1).momentum(0.9).dampening(0.1).weight_decay(0.01));
       }},
      {"SGDNesterov", [](Params p) { return std::make_unique<SGD>(p, SGDOptions(0.1).momentum(0.9).nesterov(true)); }},
      {"Adam", [](Params p) { return std::make_unique<Adam>(p, AdamOptions(0.1).weight_decay(0.01)); }},
      {"AdamAMSGrad",
       [](Params p) {
         return std::make_unique<Adam>(p, AdamOptions(0.1).amsgrad(true).betas({0.8, 0.99}));
       }},
      {"AdamW", [](Params p) { return std::make_unique<AdamW>(p, AdamWOptions(0.1)); }},
      {"RMSprop",
       [](Params p) {
         return std::make_unique<RMSprop>(p, RMSpropOptions(0.1).momentum(0.5).centered(true).weight_decay(0.01));
       }},
      {"Adagrad",
       [](Params p) {
         return std::make_unique<Adagrad>(p, AdagradOptions(0.1).lr_decay(0.1).initial_accumulator_value(0.2));
       }},
  };
}

// PyTorch's start of the recorded runs.
std::vector<Tensor> start() {
  const auto make = [](std::vector<int64_t> sizes, int64_t count, double shift) {
    return (((arange(count, kFloat) * 1.7 + shift).sin() * 0.8).view(sizes)).detach().clone().requires_grad_();
  };
  return {make({3, 2}, 6, 0), make({4}, 4, 1)};
}

void run(optim::Optimizer& optimizer, optim::LRScheduler& scheduler, const std::vector<Tensor>& parameters, int steps) {
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    Tensor loss = zeros({});
    for (const Tensor& p : parameters) loss = loss + p.pow(3).sum();
    loss.backward();
    optimizer.step();
    scheduler.step();
  }
}

TEST_F(Api, OptimizersGivePyTorchsResults) {
  const Value recorded = load(kData + "/optimizers.pt");
  for (const auto& [name, make] : optimizers()) {
    SCOPED_TRACE(name);
    const Value& expected = recorded[name];
    std::vector<Tensor> parameters = start();
    const std::unique_ptr<optim::Optimizer> optimizer = make(parameters);
    optim::StepLR scheduler(*optimizer, 2, 0.5);
    run(*optimizer, scheduler, parameters, 3);
    for (size_t i = 0; i < 2; ++i) {
      expect_close(parameters[i].detach(), expected["middle"].to_list()[i].to_tensor(), "middle");
    }
    // The state that PyTorch has saved continues as its own.
    optimizer->load_state_dict(expected["state"]);
    run(*optimizer, scheduler, parameters, 3);
    for (size_t i = 0; i < 2; ++i) {
      expect_close(parameters[i].detach(), expected["end"].to_list()[i].to_tensor(), "end");
    }
    EXPECT_DOUBLE_EQ(scheduler.get_last_lr()[0], expected["lr"].to_double());
  }
}

TEST_F(Api, OptimizerStatesSurviveFiles) {
  const std::string path = ::testing::TempDir() + "/optimizer.pt";
  for (const auto& [name, make] : optimizers()) {
    SCOPED_TRACE(name);
    std::vector<Tensor> one = start(), two = start();
    const auto first = make(one), second = make(two);
    optim::LambdaLR schedule_one(*first, [](int64_t) { return 1.0; }),
        schedule_two(*second, [](int64_t) { return 1.0; });
    run(*first, schedule_one, one, 3);
    save(*first, path);
    for (size_t i = 0; i < 2; ++i) two[i].detach().copy_(one[i].detach());
    load(*second, path);
    run(*first, schedule_one, one, 2);
    run(*second, schedule_two, two, 2);
    EXPECT_EQ(floats(one[0]), floats(two[0]));
    EXPECT_EQ(floats(one[1]), floats(two[1]));
  }
}

struct NetImpl : nn::Module {
  NetImpl() : Module("Net") {
    body = register_module("body", nn::Sequential(nn::Linear(3, 4), nn::ReLU(), nn::Dropout(0.5)));
    head = register_module("head", nn::Linear(4, 2));
    scale = register_parameter("scale", ones({}));
    steps = register_buffer("steps", zeros({}, kLong));
    cache = register_buffer("cache", zeros({2}), /*persistent=*/false);
  }
  Tensor forward(const Tensor& x) { return head(body(x)) * scale; }
  nn::Sequential body{nullptr};
  nn::Linear head{nullptr};
  Tensor scale, steps, cache;
};
TELETENSOR_MODULE(Net);

TEST_F(Api, ModulesHaveNamesAndStates) {
  Net net;
  EXPECT_THAT(net->named_parameters().keys(),
              ElementsAre("scale", "body.0.weight", "body.0.bias", "head.weight", "head.bias"));
  EXPECT_THAT(net->state_dict().keys(),
              ElementsAre("scale", "steps", "body.0.weight", "body.0.bias", "head.weight", "head.bias"));
  EXPECT_EQ(net->named_modules().size(), 6u);
  EXPECT_EQ(net->body->at<nn::LinearImpl>(0).options.out_features(), 4);
  std::ostringstream printed;
  printed << net;
  EXPECT_EQ(printed.str(),
            "Net(\n  (body): Sequential(\n    (0): Linear(in_features=3, out_features=4, bias=true)\n    (1): ReLU\n"
            "    (2): Dropout(p=0.5)\n  )\n  (head): Linear(in_features=4, out_features=2, bias=true)\n)");
  net->eval();
  EXPECT_FALSE(net->body[2]->is_training());
  net->train();
  EXPECT_TRUE(net->body[2]->is_training());

  net->to(kDouble);
  EXPECT_EQ(net->head->weight.dtype(), kDouble);  // the member, not only the module's list
  EXPECT_EQ(net->steps.dtype(), kLong);
  EXPECT_TRUE(net->head->weight.requires_grad());
  net->eval();
  net(ones({1, 3}, kDouble)).sum().backward();
  EXPECT_EQ(net->head->weight.grad().dtype(), kDouble);
  EXPECT_EQ(nn::utils::clip_grad_norm_(net->parameters(), 0.1).dtype(), kDouble);
  double square = 0;
  for (const Tensor& p : net->parameters()) {
    if (p.grad().defined()) square += p.grad().square().sum().item<double>();
  }
  EXPECT_NEAR(square, 0.01, 1e-4);
  net->zero_grad();
  EXPECT_FALSE(net->head->weight.grad().defined());
  net->apply([](nn::Module& module) {
    if (auto* linear = module.as<nn::LinearImpl>()) nn::init::constant_(linear->weight, 0.5);
  });
  EXPECT_EQ(net->head->weight.sum().item<double>(), 4);
  EXPECT_THAT(message_of<ValueError>([&] { net->register_buffer("scale", Tensor()); }), HasSubstr("already exists"));

  const std::string path = ::testing::TempDir() + "/net.pt";
  save(net, path);
  Net other;
  load(other, path);
  EXPECT_EQ(floats(other->head->weight), floats(net->head->weight));
  OrderedDict<Tensor> state = net->state_dict();
  state.insert("unknown", ones({}));
  EXPECT_THAT(message_of<RuntimeError>([&] { other->load_state_dict(state); }),
              HasSubstr("Unexpected key: \"unknown\""));
  EXPECT_THAT(message_of<RuntimeError>([&] { nn::Linear(4, 3)->load_state_dict(net->head->state_dict()); }),
              HasSubstr("size mismatch for weight"));
}

TEST_F(Api, ParameterGroupsHaveTheirOwnOptions) {
  const Tensor a = ones({2}, requires_grad()), b = ones({2}, requires_grad());
  optim::SGD optimizer(
      {optim::OptimizerParamGroup({a}), optim::OptimizerParamGroup({b}, std::make_unique<optim::SGDOptions>(1.0))},
      optim::SGDOptions(0.5));
  (a.sum() + b.sum()).backward();
  optimizer.step();
  EXPECT_THAT(floats(a), ElementsAre(0.5, 0.5));
  EXPECT_THAT(floats(b), ElementsAre(0, 0));
  optim::CosineAnnealingLR schedule(optimizer, 2);
  schedule.step();
  EXPECT_THAT(schedule.get_last_lr(), ElementsAre(::testing::DoubleEq(0.25), ::testing::DoubleEq(0.5)));
  EXPECT_THROW(optimizer.add_param_group(optim::OptimizerParamGroup({a})), ValueError);
  EXPECT_THROW(optim::Adam({a}, optim::AdamOptions(-1)), ValueError);
}

}  // namespace
}  // namespace teletensor::testing
