// Ledger: a file from which each step of a training run can be checked.
//
//   Checkpoint parts;                              // all that the run needs to go on
//   parts.add("net", *net).add("adam", adam).add("loader", *loader);
//   ledger::Ledger ledger(parts, {"run.ledger"});
//   ledger.watch(*net).watch(adam);
//   return ledger.run(1000, [&] {                  // one step
//     const auto batch = next();
//     ledger.batch({batch.data, batch.target});
//     adam.zero_grad();
//     mse_loss(net->forward(batch.data), batch.target).backward();
//     ledger.gradients();
//     adam.step();
//   });
//
// For each step the file has hashes of the batch, the random state, each gradient, parameter and
// buffer. `./tools/verify run.ledger --step 742 -- PROGRAM` starts it again. run() then loads the
// nearest checkpoint before that step and computes up to it. It prints that the step is as
// recorded, or the first quantity that differs. So the machine, the number of threads and, under
// tree(V), the number of devices may be others.
//
// Note [What a ledger costs]
// Hashing reads each gradient and each parameter once a step, in pieces that the threads share.
// Tensors of a GPU are copied to the host for it, and the host waits for them. A checkpoint is
// about three times as large as the parameters.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"
#include "nn/module/checkpoint.h"
#include "nn/module/module.h"
#include "nn/optim/optimizer.h"

namespace ramet {
namespace ledger {

class Impl;

struct LedgerOptions {
  /// The file. Empty: RAMET_LEDGER names it; where that is not set, nothing is written.
  std::string path = {};
  /// Steps between two checkpoints, which stay in PATH.checkpoints. 0: only the program's own calls
  /// of save_checkpoint().
  int64_t checkpoint_every = 100;
  /// What else decides about the bits, in any form. A run that verifies must have the same.
  std::string settings = {};
  /// The order in which gradients of replicas are added, with what it depends on: "fixed over 2",
  /// "tree:4". A run that verifies must have the same.
  std::string order = "one replica";
  /// Processes that train together, each with a part of the batch.
  int64_t processes = 1;
  /// False on ranks other than 0, which compute the same steps and write nothing.
  bool writes = true;
};

/// What verifying has found.
struct Verdict {
  bool same = false;       // did the step give the same bits?
  int64_t step = 0;        // that was asked for
  int64_t checkpoint = 0;  // from which it was computed
  std::string text;        // one line
};

/// Belongs to one thread, the one that trains. Keeps references: what it watches must outlive it.
/// A process that verifies has one.
class RAMET_API Ledger {
 public:
  /// Nothing is read or written before begin() or run(). An Error where RAMET_LEDGER_VERIFY, which
  /// ./tools/verify sets, is damaged.
  explicit Ledger(Checkpoint& parts, LedgerOptions options = {});
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Its parameters and buffers; `prefix` goes before their names. May be called for several.
  Ledger& watch(const nn::Module& module, const std::string& prefix = "");
  /// Its states, which are recorded with each checkpoint.
  Ledger& watch(const optim::Optimizer& optimizer);

  /// Calls `step` until `steps` steps are made, of which `done` were made before (a resumed run).
  /// Verifying: computes what was asked for instead, and prints the verdict. Returns 0, 1 where a
  /// quantity differs, or 2 after printing an Error: that step cannot be checked.
  int run(int64_t steps, const std::function<void()>& step, int64_t done = 0);

  // In each step:

  /// Before the forward pass: what the step learns from. Once a step.
  void batch(const std::vector<Tensor>& tensors);
  /// After a backward pass, before the optimizer's step. Once for each backward pass.
  void gradients();

  // For programs with a loop of their own, instead of run():

  /// Before the first step. Writing: goes on after `done` steps, or begins a file with a
  /// checkpoint. Verifying: loads the nearest checkpoint. Returns the number of steps made before.
  int64_t begin(int64_t done = 0);
  /// After the optimizer's step: writes, or compares. Saves a checkpoint where one is due.
  void end_step();
  /// Saves the parts as they are after the last step.
  void save_checkpoint();
  /// Does this process write or verify? The calls above do nothing where it does not.
  bool is_on() const;
  /// The file; empty where there is none.
  const std::string& path() const;
  /// Does it compare with a file, instead of writing one?
  bool verifies() const;
  /// Verifying: is the step reached, or a difference found?
  bool has_ended() const;
  /// Verifying, after the end.
  const Verdict& verdict() const;

 private:
  std::unique_ptr<Impl> impl_;
};

/// What ./tools/verify asks this process for: a ledger and a step.
struct ToVerify {
  std::string path;  // of the ledger
  int64_t step;      // from 1, as the ledger counts
};
/// From RAMET_LEDGER_VERIFY ("STEP:PATH"); nothing where it is not set.
RAMET_API std::optional<ToVerify> to_verify();

/// An Error where a ledger cannot be written there: a folder that is missing or may not be written,
/// or something that is no file.
RAMET_API void check_ledger_path(const std::string& path);
/// Removes a ledger with the checkpoints that it names. Nothing where the file is no ledger.
RAMET_API void remove_ledger(const std::string& path);
/// The settings that a ledger has. Errors as the file's: not there, changed.
RAMET_API std::string recorded_settings(const std::string& path);

}  // namespace ledger
}  // namespace ramet
