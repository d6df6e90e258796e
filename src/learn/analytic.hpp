// Models whose gradients are formulas: for tests of protocols and for claims that can be checked by hand.
#pragma once

#include "learn/task.hpp"

namespace rubato::learn {

/// constant, tagged or quadratic by scenario.model.name; nullptr for other names. samples: of one epoch.
///
/// constant:  f(w) = value * sum(w), w0 = 0: every element of every gradient is `value`; loss f(w).
/// tagged:    w0 = 0, loss 0. The gradient names its worker and worker_seq exactly in float32: elements come in pairs,
///            pair p belongs to the workers w with w mod P = p, P = min(lambda, dimension / 2). The gradient of worker
///            w has {1, worker_seq + 1} in its pair and 0 in the others, and repeats that every 2 P elements. So a sum
///            of gradients tells how many came from each worker and whether some was lost or came twice: with n
///            gradients a pair is {n, n (n + 1) / 2}, exact up to 2^24. dimension 1: {worker_seq + 1}.
/// quadratic: f(w) = 1/2 sum of h_i w_i^2, w0 = 1, h from 1 to `conditioning` in equal ratios. The gradient has noise
///            N(0, noise^2 / batch count) keyed by (seeds.data, worker, worker_seq). Loss f(w), without noise.
std::unique_ptr<Task> make_analytic(const Scenario& scenario, std::int64_t samples);

bool is_analytic(const std::string& model);

}  // namespace rubato::learn
