// What rows_models.cc and rows_captured.cc share.
#pragma once
#include <torch/torch.h>

#include <functional>

#include "rows.h"

/// The first rows: training steps of models with static shapes.
constexpr int kModelSteps = 11;
/// One repetition of the row that is set up, and what the last one gave.
extern std::function<torch::Tensor()> model_step;
extern torch::Tensor model_out;

extern "C" BenchArm open_models_arm(int threads);
