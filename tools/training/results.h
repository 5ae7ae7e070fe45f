// The folder that a run writes its results into.
#pragma once
#include <string>

namespace ramet::training {

/// With all folders above it. An Error where one cannot be made or nothing can be written.
void make_folders(const std::string& path);
/// Removes the results of an earlier run, and nothing else.
void remove_results(const std::string& folder);

}  // namespace ramet::training
