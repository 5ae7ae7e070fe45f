// What a ledger asks of its process: the environment, the command, files of checkpoints.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/ledger/ledger_file.h"

namespace ramet {
namespace ledger {

/// May this process read the file?
bool exists(const std::string& path);
/// The number of a step that a variable of the environment has. An Error where it is none.
int64_t number_from(const char* variable, const std::string& text);
/// The CPU kernels by their bits: those with fused multiply-add, or x86-64's base.
std::string kernels_of_cpu();
/// The program's file and its arguments.
std::vector<std::string> command_line();
std::string current_folder();

/// Removes the checkpoints that a ledger names. Nothing where the file is no ledger.
void remove_checkpoints(const std::string& ledger);
/// The nearest checkpoint before `step` that has its file. An Error where there is none.
int64_t nearest(const ReadLedger& ledger, int64_t step);

}  // namespace ledger
}  // namespace ramet
