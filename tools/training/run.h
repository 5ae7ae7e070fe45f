// A training run: data in, results in a folder.
#pragma once
#include <string>

#include "tools/training/options.h"

namespace ramet::training {

/// Everything that it prints in addition to the progress bar goes to standard output.
///
/// Wrong input throws Refused before anything is written. An interrupt (SIGINT, SIGTERM) ends the
/// program while the data are loaded, and leaves the folder as it was. Later it ends the run after
/// the step under way, with a checkpoint, and the result is 128 plus the signal's number; otherwise
/// the result is 0. Any other exception is a failure on the way; the last checkpoint is whole.
int run(Options options);

/// The message of an Error about the input.
struct Refused {
  std::string message;
};

}  // namespace ramet::training
