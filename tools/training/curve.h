// curve.png: training losses and a measure of the tests over the epochs.
#pragma once
#include <string>

#include "tools/training/history.h"

namespace ramet::training {

/// Draws a PNG and returns its bytes. `title` stands above, `subtitle` smaller below it. `score` is
/// the measure from 0 to 1 that is shown in percent. Losses other than the first are thinner. Works
/// for any amount of data, none included.
std::string draw_curve(const History& history, int64_t steps_per_epoch, const std::string& title,
                       const std::string& subtitle, const std::string& score = "accuracy");

}  // namespace ramet::training
