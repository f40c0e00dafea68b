// Optimizers, by libtorch's names. A step of SGD, Adam and AdamW is one fused instruction per parameter group.
//
// An optimizer is used by one thread at a time. A step does not wait.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/nn/module.h"
#include "client/serialize/value.h"

namespace teletensor::optim {

/// Options of a parameter group.
class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
  /// The options as Python's names and values in an optimizer's state_dict.
  virtual Value::Dict numbers() const = 0;
  /// Throws TypeError for a value of a wrong type. Unknown names are ignored, as they are PyTorch's own.
  virtual void set_numbers(const Value& group) = 0;
};

/// Implements OptimizerOptions for options D that list their members in `visit`.
template <typename D>
class OptionsOf : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override { return std::make_unique<D>(static_cast<const D&>(*this)); }
  double get_lr() const override { return static_cast<const D&>(*this).lr(); }
  void set_lr(double lr) override { static_cast<D&>(*this).lr(lr); }
  Value::Dict numbers() const override {
    Value::Dict dict;
    D copy = static_cast<const D&>(*this);
    copy.visit([&](const char* name, auto& value) { dict.emplace_back(name, to_value(value)); });
    return dict;
  }
  void set_numbers(const Value& group) override {
    static_cast<D&>(*this).visit([&](const char* name, auto& value) {
      if (const Value* found = group.find(name)) from_value(*found, &value);
    });
  }

 private:
  static Value to_value(double v) { return v; }
  static Value to_value(bool v) { return v; }
  static Value to_value(const std::pair<double, double>& v) { return Value::List{v.first, v.second}; }
  static void from_value(const Value& v, double* into) {
    *into = v.is_tensor() ? v.to_tensor().item<double>() : v.to_double();
  }
  static void from_value(const Value& v, bool* into) { *into = v.to_bool(); }
  static void from_value(const Value& v, std::pair<double, double>* into) {
    if (v.to_list().size() != 2) throw ValueError("expected two betas");
    *into = {v.to_list()[0].to_double(), v.to_list()[1].to_double()};
  }
};

/// Parameters with their own options. Without options, those of the optimizer.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}  // NOLINT: as libtorch's
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& other)
      : params_(other.params_), options_(other.options_ ? other.options_->clone() : nullptr) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;

  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() { return *options_; }
  const OptimizerOptions& options() const { return *options_; }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Removes the gradients, or with `set_to_none` false fills them with zeros.
  void zero_grad(bool set_to_none = true);
  /// Updates the parameters that have a gradient.
  void step();
  /// Calls `closure`, which computes the loss and its gradients, then steps. Returns the loss.
  Tensor step(const std::function<Tensor()>& closure);

  std::vector<OptimizerParamGroup>& param_groups() { return groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return groups_; }
  /// Throws ValueError for a parameter that is not a leaf or is in a group already.
  void add_param_group(OptimizerParamGroup group);

  /// The state and options as the dict of PyTorch's optimizers, which Python can load.
  Value state_dict() const;
  /// Throws ValueError unless the groups have as many parameters as this optimizer's.
  void load_state_dict(const Value& state);

 protected:
  /// Tensors and the number of steps of a parameter.
  struct State {
    int64_t step = 0;
    std::map<std::string, Tensor> tensors;
  };
  Optimizer(std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults);
  /// `params` have gradients `grads`. Called without recording.
  virtual void update(OptimizerOptions& options, const std::vector<Tensor>& params,
                      const std::vector<Tensor>& grads) = 0;
  virtual bool counts_steps() const { return true; }
  State& state_of(const Tensor& parameter) { return state_[parameter.handle().get()]; }

 private:
  std::vector<OptimizerParamGroup> groups_;
  const std::unique_ptr<OptimizerOptions> defaults_;
  std::map<const void*, State> state_;  // by parameter, which groups_ keep
};

struct SGDOptions : OptionsOf<SGDOptions> {
  SGDOptions(double lr) : lr_(lr) {}  // NOLINT: as libtorch's
  template <typename F>
  void visit(F f) {
    f("lr", lr_), f("momentum", momentum_), f("dampening", dampening_), f("weight_decay", weight_decay_);
    f("nesterov", nesterov_), f("maximize", maximize_);
  }
  TELETENSOR_ARG(double, lr);
  TELETENSOR_ARG(double, momentum) = 0;
  TELETENSOR_ARG(double, dampening) = 0;
  TELETENSOR_ARG(double, weight_decay) = 0;
  TELETENSOR_ARG(bool, nesterov) = false;
  TELETENSOR_ARG(bool, maximize) = false;
};

/// Stochastic gradient descent with momentum.
class SGD : public Optimizer {
 public:
  SGD(std::vector<OptimizerParamGroup> groups, SGDOptions options);
  SGD(std::vector<Tensor> params, SGDOptions options)
      : SGD(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(options)) {}

 protected:
  void update(OptimizerOptions& options, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) override;
  bool counts_steps() const override { return false; }
};

/// Of Adam; AdamW has its own weight_decay.
template <typename D>
struct AdamOptionsOf : OptionsOf<D> {
  explicit AdamOptionsOf(double lr, double weight_decay) : lr_(lr), weight_decay_(weight_decay) {}
  template <typename F>
  void visit(F f) {
    f("lr", lr_), f("betas", betas_), f("eps", eps_), f("weight_decay", weight_decay_), f("amsgrad", amsgrad_);
    f("maximize", maximize_);
  }
  const double& lr() const { return lr_; }
  D& lr(double v) { return lr_ = v, self(); }
  const std::pair<double, double>& betas() const { return betas_; }
  D& betas(const std::pair<double, double>& v) { return betas_ = v, self(); }
  const double& eps() const { return eps_; }
  D& eps(double v) { return eps_ = v, self(); }
  const double& weight_decay() const { return weight_decay_; }
  D& weight_decay(double v) { return weight_decay_ = v, self(); }
  const bool& amsgrad() const { return amsgrad_; }
  D& amsgrad(bool v) { return amsgrad_ = v, self(); }
  const bool& maximize() const { return maximize_; }
  D& maximize(bool v) { return maximize_ = v, self(); }

 private:
  D& self() { return static_cast<D&>(*this); }
  double lr_;
  std::pair<double, double> betas_{0.9, 0.999};
  double eps_ = 1e-8, weight_decay_;
  bool amsgrad_ = false, maximize_ = false;
};
struct AdamOptions : AdamOptionsOf<AdamOptions> {
  AdamOptions(double lr = 1e-3) : AdamOptionsOf(lr, 0) {}  // NOLINT
};
struct AdamWOptions : AdamOptionsOf<AdamWOptions> {
  AdamWOptions(double lr = 1e-3) : AdamOptionsOf(lr, 1e-2) {}  // NOLINT
};

/// Adam (Kingma and Ba 2014) and AMSGrad.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<OptimizerParamGroup> groups, AdamOptions options = {});
  explicit Adam(std::vector<Tensor> params, AdamOptions options = {})
      : Adam(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(options)) {}

 protected:
  void update(OptimizerOptions& options, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) override;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2017).
class AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<OptimizerParamGroup> groups, AdamWOptions options = {});
  explicit AdamW(std::vector<Tensor> params, AdamWOptions options = {})
      : AdamW(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(options)) {}

 protected:
  void update(OptimizerOptions& options, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) override;
};

struct RMSpropOptions : OptionsOf<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}  // NOLINT
  template <typename F>
  void visit(F f) {
    f("lr", lr_), f("momentum", momentum_), f("alpha", alpha_), f("eps", eps_), f("centered", centered_);
    f("weight_decay", weight_decay_);
  }
  TELETENSOR_ARG(double, lr);
  TELETENSOR_ARG(double, alpha) = 0.99;
  TELETENSOR_ARG(double, eps) = 1e-8;
  TELETENSOR_ARG(double, weight_decay) = 0;
  TELETENSOR_ARG(double, momentum) = 0;
  TELETENSOR_ARG(bool, centered) = false;
};
class RMSprop : public Optimizer {
 public:
  explicit RMSprop(std::vector<OptimizerParamGroup> groups, RMSpropOptions options = {});
  explicit RMSprop(std::vector<Tensor> params, RMSpropOptions options = {})
      : RMSprop(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(options)) {}

 protected:
  void update(OptimizerOptions& options, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) override;
};

struct AdagradOptions : OptionsOf<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}  // NOLINT
  template <typename F>
  void visit(F f) {
    f("lr", lr_), f("lr_decay", lr_decay_), f("eps", eps_), f("weight_decay", weight_decay_);
    f("initial_accumulator_value", initial_accumulator_value_);
  }
  TELETENSOR_ARG(double, lr);
  TELETENSOR_ARG(double, lr_decay) = 0;
  TELETENSOR_ARG(double, weight_decay) = 0;
  TELETENSOR_ARG(double, initial_accumulator_value) = 0;
  TELETENSOR_ARG(double, eps) = 1e-10;
};
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(std::vector<OptimizerParamGroup> groups, AdagradOptions options = {});
  explicit Adagrad(std::vector<Tensor> params, AdagradOptions options = {})
      : Adagrad(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(options)) {}

 protected:
  void update(OptimizerOptions& options, const std::vector<Tensor>& params, const std::vector<Tensor>& grads) override;
};

}  // namespace teletensor::optim
