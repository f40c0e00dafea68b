// Parameters with their gradients and states, as a fused optimizer step is given them.
#pragma once

#include <array>
#include <initializer_list>
#include <vector>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// The parameter, the gradient, then the states, undefined where they are not kept.
using Parameter = std::array<Tensor, 5>;

// Those parameters that have a gradient. `lists`: the gradients, then the states; empty, or as long as the parameters'.
// Throws Error (RuntimeError) where they are not, or where their tensors do not fit.
inline std::vector<Parameter> parameters(const Tensors& params, std::initializer_list<const Tensors*> lists) {
  for (const Tensors* list : lists) {
    check(list->empty() || list->size() == params.size(), "expected lists of ", params.size(), " tensors, got ",
          list->size());
  }
  std::vector<Parameter> all;
  all.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    Parameter parameter{params[i]};
    size_t slot = 1;
    for (const Tensors* list : lists) parameter[slot++] = list->empty() ? Tensor() : (*list)[i];
    check(is_floating(params[i].dtype()), "a parameter must be of a floating type, got ", name(params[i].dtype()));
    for (const Tensor& t : parameter) {
      check(!t || t.numel() == params[i].numel(), "a parameter has ", params[i].numel(),
            " elements, but its gradient or state has ", t ? t.numel() : 0);
    }
    if (parameter[1]) all.push_back(std::move(parameter));
  }
  return all;
}

inline void check_averages(const Tensors& params, const Tensors& averages, const Tensors& squares,
                           const Tensors& largest, bool amsgrad) {
  check(averages.size() == params.size() && squares.size() == params.size() &&
            (!amsgrad || largest.size() == params.size()),
        "expected the averages of all ", params.size(), " parameters");
}

}  // namespace tt
