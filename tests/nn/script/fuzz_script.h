// Damaged TorchScript files. Each is loaded, or refused by one Error.
#pragma once
#include "tests/fuzz.h"

namespace ramet {
namespace fuzz {

/// The goldens: the zip's bytes damaged; or the pickle, the code, its table of lines or a storage,
/// in an archive that is right otherwise. A module that loads is run under a limit of steps, and
/// saved.
void check_script(Tape& tape);

}  // namespace fuzz
}  // namespace ramet
