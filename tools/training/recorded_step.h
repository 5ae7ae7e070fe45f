// One step of a run, recorded and drawn: --explore. Only programs that are linked for it have this
// (//tools/training:train_explorer and others), as what records and draws is larger than the rest.
#pragma once
#include <memory>
#include <string>

#include "nn/module/module.h"

namespace ramet::training {

/// Records from where it is made until write().
class RecordedStep {
 public:
  virtual ~RecordedStep() = default;
  /// Writes PATH.ramet.gz and, where a page is asked for, PATH.html. Returns what a terminal shows
  /// of the step.
  virtual std::string write(const std::string& path, bool page) = 0;
};

/// Begins to record what this thread, and others for it, do with the model. Null in a program that
/// is linked without the explorer.
[[gnu::weak]] std::unique_ptr<RecordedStep> record_step(nn::Module& model,
                                                        const std::string& title);

}  // namespace ramet::training
