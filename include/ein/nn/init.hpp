// Initialisations: each writes random numbers into a tensor, with the next stream.
#pragma once

#include <ein/tensor.hpp>

namespace ein::nn::init {

void normal(const Tensor& x, double mean = 0, double std = 1);
/// In [low, high), also when it has been rounded to the dtype; an Error of kind `value` where that
/// has no number there.
void uniform(const Tensor& x, double low, double high);
/// Normal with mean 0, conditioned on lying between the values a and b (not multiples of std).
void trunc_normal(const Tensor& x, double std, double a, double b);

// For weights (in, out); an Error of kind `rank` for others.

/// Normal of standard deviation 1/√in, so that outputs have the scale of inputs.
void fan_in_normal(const Tensor& weight);
/// Normal of variance 2 / (in + out) (Glorot, Bengio 2010).
void xavier_normal(const Tensor& weight);
/// Uniform of the same variance, between ±√(6 / (in + out)).
void xavier_uniform(const Tensor& weight);
/// Normal of variance 2 / in, for a ReLU before the weight (He et al. 2015).
void kaiming_normal(const Tensor& weight);
/// Uniform of the same variance, between ±√(6 / in).
void kaiming_uniform(const Tensor& weight);

}  // namespace ein::nn::init
