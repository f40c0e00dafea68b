// special: the functions of torch::special that other namespaces have too. The generated ones (special::i0, ...) are in
// client/api/functions.h.
#pragma once

#include "client/api/functions.h"

namespace teletensor::special {

using teletensor::digamma;
using teletensor::erf;
using teletensor::erfc;
using teletensor::erfinv;
using teletensor::exp2;
using teletensor::expm1;
using teletensor::log1p;
using teletensor::log_softmax;
using teletensor::logit;
using teletensor::logsumexp;
using teletensor::round;
using teletensor::sinc;
using teletensor::softmax;
using teletensor::xlogy;

inline Tensor expit(const Tensor& input) { return sigmoid(input); }
inline Tensor psi(const Tensor& input) { return teletensor::digamma(input); }
inline Tensor gammaln(const Tensor& input) { return lgamma(input); }
inline Tensor gammainc(const Operand& input, const Operand& other) { return igamma(input, other); }
inline Tensor gammaincc(const Operand& input, const Operand& other) { return igammac(input, other); }
inline Tensor multigammaln(const Tensor& input, int64_t p) { return mvlgamma(input, p); }

}  // namespace teletensor::special
