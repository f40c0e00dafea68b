#include "client/optim/optimizer.h"

#include <algorithm>

#include "client/api/autograd.h"
#include "client/api/creation.h"
#include "client/api/operators.h"
#include "client/api/session.h"
#include "client/session/program_trace.h"

namespace teletensor::optim {

Optimizer::~Optimizer() = default;

Optimizer::Optimizer(std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  if (groups.empty()) throw ValueError("optimizer got an empty parameter list");
  for (OptimizerParamGroup& group : groups) add_param_group(std::move(group));
}

void Optimizer::add_param_group(OptimizerParamGroup group) {
  if (!group.has_options()) group.set_options(defaults_->clone());
  if (group.params().empty()) throw ValueError("optimizer got an empty parameter list");
  for (const Tensor& parameter : group.params()) {
    if (!parameter.is_leaf()) throw ValueError("can't optimize a non-leaf Tensor");
    for (const OptimizerParamGroup& other : groups_) {
      const bool found = std::any_of(other.params().begin(), other.params().end(),
                                     [&](const Tensor& p) { return p.is_same(parameter); });
      if (found) throw ValueError("some parameters appear in more than one parameter group");
    }
  }
  groups_.push_back(std::move(group));
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const OptimizerParamGroup& group : groups_) autograd::internal::zero_gradients(group.params(), set_to_none);
}

void Optimizer::step() {
  if (tt::client::ProgramTrace::is_active())
    throw NotImplementedError(
        "[trace] a traced function cannot contain an optimizer's step; call it after the Program");
  NoGradGuard no_grad;
  for (OptimizerParamGroup& group : groups_) {
    std::vector<Tensor> params, grads;
    for (const Tensor& parameter : group.params()) {
      Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      params.push_back(parameter);
      grads.push_back(std::move(gradient));
    }
    if (!params.empty()) update(group.options(), params, grads);
  }
}

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  Tensor loss;
  {
    AutoGradMode grad(true);
    loss = closure();
  }
  step();
  return loss;
}

Value Optimizer::state_dict() const {
  Value::Dict state;
  Value::List groups;
  int64_t number = 0;
  for (const OptimizerParamGroup& group : groups_) {
    Value::List members;
    for (const Tensor& parameter : group.params()) {
      const auto found = state_.find(parameter.handle().get());
      if (found != state_.end()) {
        Value::Dict entries;
        if (counts_steps()) entries.emplace_back("step", tensor(static_cast<double>(found->second.step), kFloat));
        for (const auto& [name, value] : found->second.tensors) entries.emplace_back(name, value);
        state.emplace_back(number, std::move(entries));
      }
      members.emplace_back(number++);
    }
    Value::Dict options = group.options().numbers();
    options.emplace_back("params", std::move(members));
    groups.emplace_back(std::move(options));
  }
  return Value::Dict{{"state", std::move(state)}, {"param_groups", std::move(groups)}};
}

void Optimizer::load_state_dict(const Value& given) {
  const Value::List& groups = given["param_groups"].to_list();
  if (groups.size() != groups_.size()) throw ValueError("loaded state dict has a different number of parameter groups");
  std::map<const void*, State> loaded;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Value::List& members = groups[i]["params"].to_list();
    if (members.size() != groups_[i].params().size()) {
      throw ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group");
    }
    for (size_t j = 0; j < members.size(); ++j) {
      const Value* entries = given["state"].find(members[j].to_int());
      if (!entries) continue;
      const Tensor& parameter = groups_[i].params()[j];
      State& state = loaded[parameter.handle().get()];
      for (const auto& [name, value] : entries->to_dict()) {
        if (name.to_string() == "step") {
          state.step = value.is_tensor() ? value.to_tensor().item<int64_t>() : value.to_int();
        } else if (value.is_tensor()) {
          if (!(value.to_tensor().sizes() == parameter.sizes())) {
            throw ValueError("the state '" + name.to_string() + "' has other sizes than its parameter");
          }
          state.tensors[name.to_string()] = value.to_tensor().detach().clone().to(parameter);
        }
      }
    }
  }
  for (size_t i = 0; i < groups.size(); ++i) groups_[i].options().set_numbers(groups[i]);
  state_ = std::move(loaded);
}

namespace {

void check_not_negative(const char* what, double value) {
  if (!(value >= 0)) throw ValueError(std::string("Invalid ") + what + ": " + std::to_string(value));
}

// The tensor of a state, which is made on the first use.
template <typename Make>
const Tensor& tensor_of(std::map<std::string, Tensor>* tensors, const char* name, Make make) {
  Tensor& tensor = (*tensors)[name];
  if (!tensor.defined()) tensor = make();
  return tensor;
}

// One group's step of Adam, a call per number of steps, which is usually the same for all.
template <typename State>
void adam_update(const auto& options, bool decoupled, const std::vector<Tensor>& params,
                 const std::vector<Tensor>& grads, const std::function<State&(const Tensor&)>& state_of) {
  struct Lists {
    std::vector<Tensor> params, grads, means, squares, largest;
  };
  std::map<int64_t, Lists> by_step;
  for (size_t i = 0; i < params.size(); ++i) {
    State& state = state_of(params[i]);
    Lists& lists = by_step[++state.step];
    const auto make = [&] { return zeros_like(params[i].detach()); };
    lists.params.push_back(params[i]);
    lists.grads.push_back(grads[i]);
    lists.means.push_back(tensor_of(&state.tensors, "exp_avg", make));
    lists.squares.push_back(tensor_of(&state.tensors, "exp_avg_sq", make));
    if (options.amsgrad()) lists.largest.push_back(tensor_of(&state.tensors, "max_exp_avg_sq", make));
  }
  for (const auto& [step, lists] : by_step) {
    ops::adam_step(lists.params, lists.grads, lists.means, lists.squares, lists.largest, step, options.lr(),
                   options.betas().first, options.betas().second, options.eps(), options.weight_decay(), decoupled,
                   options.amsgrad(), options.maximize());
  }
}

void check_adam(const auto& options) {
  check_not_negative("learning rate", options.lr());
  check_not_negative("epsilon value", options.eps());
  check_not_negative("weight_decay value", options.weight_decay());
  for (double beta : {options.betas().first, options.betas().second}) {
    if (!(beta >= 0 && beta < 1)) throw ValueError("Invalid beta parameter: " + std::to_string(beta));
  }
}

}  // namespace

SGD::SGD(std::vector<OptimizerParamGroup> groups, SGDOptions options) : Optimizer(std::move(groups), options.clone()) {
  check_not_negative("learning rate", options.lr());
  check_not_negative("momentum value", options.momentum());
  check_not_negative("weight_decay value", options.weight_decay());
  if (options.nesterov() && (options.momentum() <= 0 || options.dampening() != 0)) {
    throw ValueError("Nesterov momentum requires a momentum and zero dampening");
  }
}

void SGD::update(OptimizerOptions& given, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) {
  const auto& o = static_cast<const SGDOptions&>(given);
  const auto step = [&o](const std::vector<Tensor>& ps, const std::vector<Tensor>& gs, const std::vector<Tensor>& bs,
                         bool first) {
    ops::sgd_step(ps, gs, bs, o.lr(), o.momentum(), o.dampening(), o.weight_decay(), o.nesterov(), o.maximize(), first);
  };
  if (o.momentum() == 0) return step(params, grads, {}, false);
  // A parameter's first step initialises its momentum to its gradient.
  std::vector<Tensor> ps[2], gs[2], bs[2];
  for (size_t i = 0; i < params.size(); ++i) {
    auto& tensors = state_of(params[i]).tensors;
    const size_t first = tensors.contains("momentum_buffer") ? 0 : 1;
    bs[first].push_back(tensor_of(&tensors, "momentum_buffer", [&] { return empty_like(params[i].detach()); }));
    ps[first].push_back(params[i]);
    gs[first].push_back(grads[i]);
  }
  for (size_t first : {1, 0}) {
    if (!ps[first].empty()) step(ps[first], gs[first], bs[first], first == 1);
  }
}

Adam::Adam(std::vector<OptimizerParamGroup> groups, AdamOptions options)
    : Optimizer(std::move(groups), options.clone()) {
  check_adam(options);
}
void Adam::update(OptimizerOptions& given, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) {
  adam_update<State>(static_cast<const AdamOptions&>(given), false, params, grads,
                     [this](const Tensor& p) -> State& { return state_of(p); });
}
AdamW::AdamW(std::vector<OptimizerParamGroup> groups, AdamWOptions options)
    : Optimizer(std::move(groups), options.clone()) {
  check_adam(options);
}
void AdamW::update(OptimizerOptions& given, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) {
  adam_update<State>(static_cast<const AdamWOptions&>(given), true, params, grads,
                     [this](const Tensor& p) -> State& { return state_of(p); });
}

RMSprop::RMSprop(std::vector<OptimizerParamGroup> groups, RMSpropOptions options)
    : Optimizer(std::move(groups), options.clone()) {
  check_not_negative("learning rate", options.lr());
  check_not_negative("epsilon value", options.eps());
  check_not_negative("momentum value", options.momentum());
  check_not_negative("weight_decay value", options.weight_decay());
  check_not_negative("alpha value", options.alpha());
}
void RMSprop::update(OptimizerOptions& given, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) {
  const auto& o = static_cast<const RMSpropOptions&>(given);
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor p = params[i].detach();
    const Tensor g = o.weight_decay() != 0 ? grads[i].add(p, o.weight_decay()) : grads[i].detach();
    State& state = state_of(params[i]);
    ++state.step;
    const auto make = [&] { return zeros_like(p); };
    Tensor squares = tensor_of(&state.tensors, "square_avg", make).mul_(o.alpha()).addcmul_(g, g, 1 - o.alpha());
    if (o.centered()) {
      const Tensor mean = tensor_of(&state.tensors, "grad_avg", make).lerp_(g, 1 - o.alpha());
      squares = squares.addcmul(mean, mean, -1);
    }
    const Tensor scale = squares.sqrt().add(o.eps());
    if (o.momentum() > 0) {
      p.add_(tensor_of(&state.tensors, "momentum_buffer", make).mul_(o.momentum()).addcdiv_(g, scale), -o.lr());
    } else {
      p.addcdiv_(g, scale, -o.lr());
    }
  }
}

Adagrad::Adagrad(std::vector<OptimizerParamGroup> groups, AdagradOptions options)
    : Optimizer(std::move(groups), options.clone()) {
  check_not_negative("learning rate", options.lr());
  check_not_negative("lr_decay value", options.lr_decay());
  check_not_negative("weight_decay value", options.weight_decay());
  check_not_negative("initial_accumulator_value value", options.initial_accumulator_value());
  check_not_negative("epsilon value", options.eps());
}
void Adagrad::update(OptimizerOptions& given, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) {
  const auto& o = static_cast<const AdagradOptions&>(given);
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor p = params[i].detach();
    const Tensor g = o.weight_decay() != 0 ? grads[i].add(p, o.weight_decay()) : grads[i].detach();
    State& state = state_of(params[i]);
    const double lr = o.lr() / (1 + static_cast<double>(state.step++) * o.lr_decay());
    const Tensor& sum = tensor_of(&state.tensors, "sum", [&] { return full_like(p, o.initial_accumulator_value()); });
    p.addcdiv_(g, sum.addcmul_(g, g).sqrt().add(o.eps()), -lr);
  }
}

}  // namespace teletensor::optim
