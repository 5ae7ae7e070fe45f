// Damaged texts of TorchScript. Each is compiled, or refused by an Error. What was compiled runs, or
// ends in an Error.
#pragma once
#include "tests/fuzz.h"

namespace ramet {
namespace fuzz {

/// A printed text with tokens of it, and of the language, in other places.
void check_text(Tape& tape);
/// A table of Python's lines (debug_pkl) with damaged bytes.
void check_origins(Tape& tape);

}  // namespace fuzz
}  // namespace ramet
