// Where the first NaN came from, in words.
//
//   see::ExplainAnomalies guard(*net);
//   loss = ...; loss.backward();      // throws, where the loss or a gradient is NaN:
//
//   [anomaly] NaN: the first operation of the forward that made one is log in encoder.1
//   (train.cc:42), on cpu:1, replica 1
//     result 0: float32[64, 10] from -2 to 0.9, mean -0.4, 3 NaN
//     input 0: float32[64, 10] from -0.1 to 2.4, mean 0.5; made by sub in encoder.0
//     from there to the loss: log in encoder.1 -> mul -> mean
//
// autograd::DetectAnomalyGuard only checks the backward and names the scopes around the forward
// call. This class checks the forward first, where nearly all NaN come from.
#pragma once
#include <memory>
#include <string>

#include "nn/module/arg.h"
#include "nn/module/module.h"

namespace ramet {
namespace see {

/// Options of ExplainAnomalies.
struct AnomalyOptions {
  /// The program's line that called the operation: where it was compiled with -g; else its
  /// function.
  RAMET_ARG(bool, source_lines) = true;
  /// What to call this process, or this thread of it; -1: RANK of the environment, where there are
  /// several.
  RAMET_ARG(int, rank) = -1;
};

/// While it lives, it checks every operation of this thread that makes a node. It also checks those
/// that other threads run for this thread (replicas, lanes). A check makes some passes over each
/// result and gradient, and on a GPU waits for each. A step of a perceptron took 4 times (batch of
/// 256) to 12 times (8) as long. One thread serves all lanes of a backward, so the first finding
/// does not depend on timing. Destroy it on the thread that made it.
///
/// An operation made a NaN where a result has one and no input has. A NaN loss or gradient ends the
/// backward with an Error, before the rest of the backward adds to any leaf. A forward NaN that a
/// later operation hid (where(), max()) ends nothing. It is reported only where a gradient is NaN
/// as well. Infinities are no anomaly. Where a NaN came from an infinity, the report says where the
/// first infinity was made.
///
/// It does not see operations that record no history (they show as "it was there in an input"), nor
/// values from other ranks. check_gradients() finds a leaf with a NaN gradient although all its
/// contributions were not NaN.
class RAMET_API ExplainAnomalies {
 public:
  using Options = AnomalyOptions;  // LibTorch's way to name them
  explicit ExplainAnomalies(Options options = {});
  /// The same; reports also name the paths of the model's modules, as named_modules() does. Until
  /// the guard is gone the modules have a hook each, so a step that was captured before is captured
  /// again.
  explicit ExplainAnomalies(nn::Module& model, Options options = {});
  template <class M>
  explicit ExplainAnomalies(const nn::ModuleHolder<M>& model, Options options = {})
      : ExplainAnomalies(static_cast<nn::Module&>(*model.ptr()), std::move(options)) {}
  ~ExplainAnomalies();
  ExplainAnomalies(const ExplainAnomalies&) = delete;
  ExplainAnomalies& operator=(const ExplainAnomalies&) = delete;

  /// What was found, as the Error says it; empty: nothing. Of the forward that the last backward
  /// belonged to, or that is under way.
  std::string report() const;
  /// Call it after a backward. An Error where a parameter of the model has a NaN gradient. It names
  /// the first one, by name, and where the NaN came from, as far as this rank knows.
  void check_gradients() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace see
}  // namespace ramet
