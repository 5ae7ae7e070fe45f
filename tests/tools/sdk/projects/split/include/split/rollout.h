#pragma once

#include <c10/util/Optional.h>

#include <vector>

#include "split/policy.h"

namespace split {

struct Step {
  at::Tensor log_probability, value;
  float reward = 0;
};

// A stick on a cart, simplified to one angle; pushed left or right.
class Stick {
 public:
  at::Tensor reset();
  // the next state, or none where it fell
  c10::optional<at::Tensor> push(int64_t action);

 private:
  float angle_ = 0, speed_ = 0;
};

std::vector<Step> play(Policy& policy, Stick& stick, int64_t most);
at::Tensor loss_of(const std::vector<Step>& steps, double discount);

}  // namespace split
