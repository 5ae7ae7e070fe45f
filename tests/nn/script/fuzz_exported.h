// Damaged .pt2 files. Each is loaded, or refused by one Error.
#pragma once
#include "tests/fuzz.h"

namespace ramet {
namespace fuzz {

/// The goldens of torch.export. Bytes of an entry are damaged, or words of its JSON stand in other
/// places. A program that loads is run under a limit of steps, and saved.
void check_exported(Tape& tape);

}  // namespace fuzz
}  // namespace ramet
