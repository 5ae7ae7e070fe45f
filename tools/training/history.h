// The measurements of a run, step by step: kept in memory for the curve, and in metrics.jsonl for
// other programs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ramet::training {

/// A job's measure in addition to loss and accuracy: "generator_loss", of a test "iou".
struct Measure {
  std::string name;
  double value;
};
/// "generator loss".
std::string readable(std::string name);
struct StepRecord {
  int64_t step, epoch;  // from 1
  double loss, accuracy, lr, seconds;
  std::vector<Measure> more = {};
};
struct EpochRecord {
  int64_t epoch, step;  // after which step
  double test_loss, test_accuracy, seconds;
  std::vector<Measure> more = {};  // in the file each is "test_" and its name

  /// "accuracy", or one of `more`; NaN where there is none.
  double test(const std::string& name) const;
};

/// One JSON object a line, appended with one write each, so a killed run leaves whole lines.
class History {
 public:
  /// Begins a new file, or goes on after `resume_step`: later lines, and a last one that is cut,
  /// are dropped.
  void open(const std::string& path, int64_t resume_step);
  ~History();
  History() = default;
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void add(const StepRecord& r);
  void add(const EpochRecord& r);
  const std::vector<StepRecord>& steps() const { return steps_; }
  const std::vector<EpochRecord>& epochs() const { return epochs_; }

 private:
  void write_line(const std::string& line);
  std::vector<StepRecord> steps_;
  std::vector<EpochRecord> epochs_;
  int fd_ = -1;
};

}  // namespace ramet::training
