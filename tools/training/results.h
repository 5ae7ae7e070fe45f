// The folder that a run writes its results into.
#pragma once
#include <string>

namespace ramet::training {

/// Where --ledger without a file writes.
inline constexpr const char* kLedger = "run.ledger";

/// Makes the folder with all folders above it. An Error where one cannot be made or nothing can be
/// written.
void make_folders(const std::string& path, const char* option = "out");
/// Removes files that killed runs left: `NAME.tmp.PID.N` of a result where no process has that id.
/// Those of another run that is under way stay.
void remove_leftovers(const std::string& folder);
/// Is the file a result in the folder, by whatever name? A new run there removes or replaces it.
bool is_result(const std::string& path, const std::string& folder);
/// Removes the results of an earlier run and nothing else. Its checkpoint stays, which the new
/// run's first one has replaced. A config.json is a result where the summary is of GPT-2.
void remove_stale_results(const std::string& folder);

}  // namespace ramet::training
