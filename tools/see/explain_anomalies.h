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
// autograd::DetectAnomalyGuard looks at the backward alone and names the scopes around the forward
// call; this looks at the forward first, where nearly all NaN come from.
#pragma once
#include <memory>
#include <string>

#include "nn/module/arg.h"
#include "nn/module/module.h"

namespace ramet {
namespace see {

struct AnomalyOptions {
  /// The program's line that called the operation: where it was compiled with -g; else its
  /// function.
  RAMET_ARG(bool, source_lines) = true;
  /// What to call this process, or this thread of it; -1: RANK of the environment, where there are
  /// several.
  RAMET_ARG(int, rank) = -1;
};

/// While it lives every operation of this thread that makes a node, and of what other threads do
/// for it (replicas, lanes), is looked at: some passes over each result and gradient, on a GPU a
/// wait for each; a step of a perceptron took 4 times (batch of 256) to 12 times (8) as long. One
/// thread serves all lanes of a backward, so that what is found first does not depend on timing.
/// Destroyed on the thread that made it.
///
/// An operation made a NaN where a result has one and no input has. A loss that is NaN, and a
/// gradient that is, end the backward with an Error, before anything is added to a leaf by the rest
/// of it. A NaN that the forward made and something hid (where(), max()) ends nothing, but is told
/// where a gradient is NaN besides. Infinities are no anomaly: where a NaN came of one, it is said
/// where the first one was made.
///
/// Not seen: operations that record no history (they show as "it was there in an input"), and what
/// comes from other ranks: that a leaf's gradient is NaN although all that was added to it was not
/// is found by check_gradients().
class RAMET_API ExplainAnomalies {
 public:
  using Options = AnomalyOptions;
  explicit ExplainAnomalies(Options options = {});
  /// And the paths of its modules, as named_modules() calls them, are told. Until the guard is gone
  /// they have a hook each, so a step that was captured before is captured again.
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
  /// After a backward: an Error where a parameter of the model has a NaN gradient, the first one by
  /// name, and whence, as far as this rank knows.
  void check_gradients() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace see
}  // namespace ramet
