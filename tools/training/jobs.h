// The list of models that can be trained.
#pragma once
#include <memory>
#include <string>

#include "tools/training/job.h"
#include "tools/training/options.h"

namespace ramet::training {

/// Reads the data, or makes them. An Error where they are wrong, or for a model of another name.
std::unique_ptr<Job> make_job(const Options& options);

/// What --model has by default. Null for another name.
struct JobDefaults {
  const char* data;
  double lr = 2e-3;
  int64_t batch = 128, epochs = 3;
};
const JobDefaults* defaults_of(const std::string& model);
/// "cnn, mlp or gpt".
std::string job_names();
/// What each job does, in a line.
std::string job_descriptions();
/// The defaults of those that have others than cnn, a line for each.
std::string job_defaults();

}  // namespace ramet::training
