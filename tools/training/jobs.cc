#include "tools/training/jobs.h"

#include <iterator>
#include <sstream>

namespace ramet::training {

using MakeJob = std::unique_ptr<Job>(const Options& options);
MakeJob make_classifier, make_text_job, make_dcgan, make_unet, make_gpt2, make_seq2seq;

namespace {

struct Row {
  const char *name, *does;
  JobDefaults defaults;
  MakeJob* make;
};
constexpr const char *kClasses = "tell classes of images", *kNext = "go on with a text";
// A job is a file with its MakeJob, and a row.
constexpr Row kJobs[] = {
    {"cnn", kClasses, {"fashion-mnist"}, make_classifier},
    {"mlp", kClasses, {"fashion-mnist"}, make_classifier},
    {"resnet", kClasses, {"shapes", 2e-3, 64, 12}, make_classifier},
    {"dcgan", "draws images", {"fashion-mnist", 2e-4, 64}, make_dcgan},
    {"unet", "tells which shape each pixel is of", {"shapes", 4e-3, 16, 10}, make_unet},
    {"gpt", kNext, {"CONTRIBUTING.md", 2e-3, 32, 5}, make_text_job},
    {"lstm", kNext, {"CONTRIBUTING.md", 2e-3, 32, 10}, make_text_job},
    {"gpt2", kNext, {"CONTRIBUTING.md", 2e-3, 16, 10}, make_gpt2},
    {"seq2seq", "rewrites strings", {"dates", 2e-3, 64}, make_seq2seq},
};

const Row* find(const std::string& model) {
  for (const Row& row : kJobs)
    if (model == row.name) return &row;
  return nullptr;
}

}  // namespace

std::unique_ptr<Job> make_job(const Options& options) {
  const Row* row = find(options.model);
  RAMET_CHECK(row, "train", "--model: got \"", options.model, "\", expected ", job_names());
  return row->make(options);
}

const JobDefaults* defaults_of(const std::string& model) {
  const Row* row = find(model);
  return row ? &row->defaults : nullptr;
}

std::string job_names() {
  std::string text;
  for (const Row& row : kJobs) {
    const bool last = &row == std::end(kJobs) - 1;
    text += (text.empty() ? "" : last ? " or " : ", ") + std::string(row.name);
  }
  return text;
}

std::string job_descriptions() {
  std::string text;
  for (const Row& row : kJobs) {
    const Row* next = &row + 1;
    const bool same = next != std::end(kJobs) && std::string(next->does) == row.does;
    text += row.name + (same ? ", " : ": " + std::string(row.does) + "; ");
  }
  return text.substr(0, text.size() - 2);
}

std::string job_defaults() {
  const JobDefaults& usual = kJobs[0].defaults;
  std::ostringstream text;
  for (const Row& row : kJobs) {
    const JobDefaults& own = row.defaults;
    std::ostringstream line;
    if (std::string(own.data) != usual.data) line << " --data " << own.data;
    if (own.lr != usual.lr) line << " --lr " << own.lr;
    if (own.batch != usual.batch) line << " --batch " << own.batch;
    if (own.epochs != usual.epochs) line << " --epochs " << own.epochs;
    if (!line.str().empty()) text << "  --model " << row.name << ":" << line.str() << "\n";
  }
  return text.str();
}

}  // namespace ramet::training
