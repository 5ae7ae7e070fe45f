// How two runs differ.
#pragma once
#include <optional>
#include <string>

#include "tools/ledger/ledger_file.h"

namespace ramet {
namespace ledger {

/// What differs, in one line: the first quantity in the order of a step. Nothing where all is
/// equal.
std::optional<std::string> difference(const Header& names, const StepLine& recorded,
                                      const StepLine& here);
std::optional<std::string> difference(const Header& names, const CheckpointLine& recorded,
                                      const CheckpointLine& here);

/// An Error where a run of `here` cannot have the bits of `recorded`.
void check_same_run(const Header& recorded, const Header& here);

}  // namespace ledger
}  // namespace ramet
