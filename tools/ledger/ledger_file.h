// The file of a ledger: a line of JSON for the run, and one for each step and each checkpoint.
//
// Note [The file of a ledger]
// The first line is the header. "step" lines follow, numbered from 1 or from where a resumed run
// began a new file. A "checkpoint" line N comes after "step" line N, when the file of that
// checkpoint is on disk. Each line ends with "chain": the hash of the chain before it and of the
// line's text. So a line that was changed or lost is found. That guards against errors, not
// against a forger: XXH3 is no cryptographic hash. One call writes a line. So a killed run leaves
// whole lines, or a last one without its end, which readers drop.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ramet {
namespace ledger {

/// What must be equal for two runs to have the same bits, and the names of what is hashed.
struct Header {
  std::string settings, order, device, kernels;
  std::vector<std::string> parameters, buffers, states;
  /// How the program was called and in which folder: for ./tools/verify.
  std::vector<std::string> command;
  std::string folder;
  int64_t processes = 1;
};

/// An operation of a step with the hashes of its results, or of the gradients that its backward
/// gave. Shard: -1 outside of replicas. Number: in the order of the shard's forward pass.
struct Operation {
  int64_t shard = -1, number = 0;
  bool backward = false;
  std::string name;
  uint64_t hash = 0;
};

/// Hashes of one step; 0 of an undefined tensor.
struct StepLine {
  int64_t step = 0;
  uint64_t batch = 0, random = 0;
  std::vector<std::vector<uint64_t>> gradients;  // of each backward pass
  std::vector<uint64_t> parameters, buffers;
  std::vector<Operation> operations;
};

/// Hashes of what a checkpoint after that step holds.
struct CheckpointLine {
  int64_t step = 0;
  std::vector<uint64_t> parameters, buffers, states;
};

/// A ledger that was read.
class ReadLedger {
 public:
  /// An Error where the file is missing, is no ledger, or has a line that was changed or lost.
  explicit ReadLedger(std::string path);
  /// Is the file one of these, to judge by its first line?
  static bool is_ledger(const std::string& path);

  const Header& header() const { return header_; }
  const std::string& path() const { return path_; }
  /// Numbers of the steps and checkpoints, in the order of the file.
  std::vector<int64_t> steps() const { return numbers(Kind::kStep); }
  std::vector<int64_t> checkpoints() const { return numbers(Kind::kCheckpoint); }
  /// The last line has no end: the run was killed there.
  bool is_cut() const { return cut_; }
  /// An Error where there is none of that number.
  StepLine step(int64_t number) const;
  CheckpointLine checkpoint(int64_t number) const;
  bool has_step(int64_t number) const { return find(Kind::kStep, number); }
  bool has_checkpoint(int64_t number) const { return find(Kind::kCheckpoint, number); }
  /// The file up to the last line of a step or checkpoint <= `step`.
  std::string up_to(int64_t step) const;

 private:
  enum class Kind : uint8_t { kStep, kCheckpoint, kOther };
  struct Line {
    Kind kind;
    int64_t number;  // 0 of other kinds
    std::string text;
  };
  static Line line_of(std::string text);
  std::vector<int64_t> numbers(Kind kind) const;
  const Line* find(Kind kind, int64_t number) const;
  const std::string& text_of(Kind kind, int64_t number) const;

  std::string path_, first_;
  Header header_;
  std::vector<Line> lines_;  // after the first
  bool cut_ = false;
};

/// Appends lines to a file.
class LedgerWriter {
 public:
  LedgerWriter() = default;
  LedgerWriter(const LedgerWriter&) = delete;
  ~LedgerWriter();
  LedgerWriter& operator=(const LedgerWriter&) = delete;

  /// Begins a new file.
  void begin(const std::string& path, const Header& header);
  /// Goes on after `step`; later lines are dropped. Does the file have that step? An Error where it
  /// is not of such a run.
  bool go_on(const std::string& path, const Header& header, int64_t step);
  /// An Error where the disk takes no more.
  void add(const StepLine& line);
  void add(const CheckpointLine& line);

 private:
  void open();
  void write(std::string text);
  std::string path_;
  uint64_t chain_ = 0;
  int fd_ = -1;
};

/// The file of the checkpoint after that step.
std::string checkpoint_path(const std::string& ledger, int64_t step);

}  // namespace ledger
}  // namespace ramet
