// curve.png: training loss and test accuracy over the epochs.
#pragma once
#include <string>

#include "tools/training/history.h"

namespace ramet::training {

/// PNG bytes. `title` stands above, `subtitle` smaller below it. Works for any amount of data, none
/// included.
std::string draw_curve(const History& history, int64_t steps_per_epoch, const std::string& title,
                       const std::string& subtitle);

}  // namespace ramet::training
