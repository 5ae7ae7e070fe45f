#include "tools/ledger/ledger.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "autograd/graph/graph_observer.h"
#include "nn/serialize/archive.h"
#include "nn/serialize/safetensors.h"
#include "runtime/devices/generator.h"
#include "runtime/devices/mersenne.h"
#include "tools/ledger/difference.h"
#include "tools/ledger/hash.h"
#include "tools/ledger/ledger_file.h"
#include "tools/ledger/operations.h"
#include "tools/ledger/process.h"

namespace ramet {
namespace ledger {

// ---- the state of a ledger ----------------------------------------------------------------------

class Impl {
 public:
  Impl(Checkpoint& parts, LedgerOptions options) : parts_(parts), options_(std::move(options)) {
    asked_ = to_verify();
    if (asked_) {
      options_.path = asked_->path;
    } else if (options_.path.empty()) {
      const char* const path = std::getenv("RAMET_LEDGER");
      options_.path = path ? path : "";
    }
    RAMET_CHECK(options_.checkpoint_every >= 0, "ledger", "checkpoint_every: got ",
                options_.checkpoint_every, ", expected at least 0");
    const char* const operations = std::getenv("RAMET_LEDGER_OPERATIONS");
    if (operations && *operations)
      observed_step_ = number_from("RAMET_LEDGER_OPERATIONS", operations);
  }

  bool verifies() const { return asked_.has_value(); }
  bool is_on() const { return verifies() || (options_.writes && !options_.path.empty()); }
  // Other ranks compute the same steps, and leave the comparison to rank 0.
  bool hashes() const { return is_on() && options_.writes; }
  bool has_ended() const { return ended_; }
  const std::string& path() const { return options_.path; }
  const Verdict& verdict() const { return verdict_; }

  void watch(const nn::Module& module, const std::string& prefix) {
    RAMET_CHECK(!begun_, "ledger", "watch() was called after begin()");
    for (const auto& item : module.named_parameters()) {
      header_.parameters.push_back(prefix + item.key());
      parameters_.push_back(item.value());
    }
    for (const auto& item : module.named_buffers()) header_.buffers.push_back(prefix + item.key());
    modules_.push_back(&module);
  }

  void watch(const optim::Optimizer& optimizer) {
    RAMET_CHECK(!begun_, "ledger", "watch() was called after begin()");
    optimizers_.push_back(&optimizer);
  }

  int64_t begin(int64_t done) {
    RAMET_CHECK(!begun_, "ledger", "begin() was called twice");
    begun_ = true;
    step_ = done;
    if (!is_on()) return step_;
    complete_header();
    if (verifies()) begin_verifying();
    else begin_writing();
    return step_;
  }

  void batch(const std::vector<Tensor>& tensors) {
    if (!hashes()) return;
    RAMET_CHECK(begun_, "ledger", "batch() was called before begin() or run()");
    RAMET_CHECK(!line_, "ledger", "step ", step_ + 1, ": batch() was called twice");
    line_.emplace();
    line_->step = step_ + 1;
    line_->batch = hash_of(hex_of(tensors));
    line_->random = random_state();
    const bool observe = verifies() ? recorded_ && line_->step == asked_->step &&
                                          !recorded_->step(line_->step).operations.empty()
                                    : line_->step == observed_step_;
    if (!observe) return;
    operations_ = std::make_shared<OperationHashes>();
    guard_.emplace(operations_);
  }

  void gradients() {
    if (!hashes()) return;
    RAMET_CHECK(line_, "ledger", "step ", step_ + 1, ": gradients() was called before batch()");
    std::vector<Tensor> all;
    for (const Tensor& p : parameters_) all.push_back(p.grad());
    line_->gradients.push_back(hashes_of(all));
  }

  void end_step() {
    if (!is_on() || ended_) return;
    RAMET_CHECK(line_ || !hashes(), "ledger", "step ", step_ + 1, ": batch() was not called");
    ++step_;
    if (line_) {
      guard_.reset();
      if (operations_) line_->operations = operations_->all();
      operations_.reset();
      line_->parameters = hashes_of(parameters_);
      line_->buffers = hashes_of(buffers());
    }
    if (verifies()) {
      compare_step();
    } else {
      writer_.add(*line_);
      if (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0)
        save_checkpoint();
    }
    line_.reset();
  }

  void save_checkpoint() {
    if (!is_on() || verifies()) return;
    ::mkdir((options_.path + ".checkpoints").c_str(), 0777);
    parts_.save(checkpoint_path(options_.path, step_));
    writer_.add(checkpoint_line());
  }

 private:
  void complete_header() {
    std::unordered_map<const TensorImpl*, std::string> names;
    for (size_t i = 0; i < parameters_.size(); ++i)
      names.emplace(parameters_[i].impl(), header_.parameters[i]);
    for (const optim::Optimizer* optimizer : optimizers_)
      for (const optim::OptimizerParamGroup& group : optimizer->param_groups())
        for (const Tensor& p : group.params()) states_.emplace_back(optimizer, p);
    for (size_t i = 0; i < states_.size(); ++i) {
      const auto found = names.find(states_[i].second.impl());
      header_.states.push_back(found == names.end() ? std::to_string(i) : found->second);
    }
    header_.settings = options_.settings;
    header_.order = options_.order;
    header_.device = leading_device().is_cpu() ? "CPUs" : "GPUs";
    header_.kernels = kernels_of_cpu();
    header_.command = command_line();
    header_.folder = current_folder();
    header_.processes = options_.processes;
  }

  void begin_writing() {
    check_ledger_path(options_.path);
    // After a gap steps can be checked from here on.
    const bool goes_on = step_ > 0 && exists(options_.path);
    if (goes_on && writer_.go_on(options_.path, header_, step_)) return;
    if (!goes_on) {
      remove_checkpoints(options_.path);  // an earlier run's
      writer_.begin(options_.path, header_);
    }
    save_checkpoint();
  }

  void begin_verifying() {
    verdict_.step = asked_->step;
    if (!options_.writes) {
      const ReadLedger ledger(asked_->path);
      step_ = nearest(ledger, asked_->step);
      parts_.load(checkpoint_path(asked_->path, step_));
      return;
    }
    recorded_.emplace(asked_->path);
    check_same_run(recorded_->header(), header_);
    verdict_.checkpoint = step_ = nearest(*recorded_, asked_->step);
    const std::string path = checkpoint_path(asked_->path, step_);
    parts_.load(path);
    const auto other = difference(header_, recorded_->checkpoint(step_), checkpoint_line());
    RAMET_CHECK(!other, "ledger", "\"", path, "\" is not what \"", asked_->path,
                "\" records: ", other.value_or(""));
  }

  void compare_step() {
    if (line_) {
      auto found = difference(header_, recorded_->step(step_), *line_,
                              recorded_->header().processes == header_.processes);
      if (!found && recorded_->has_checkpoint(step_))
        found = difference(header_, recorded_->checkpoint(step_), checkpoint_line());
      if (found) {
        ended_ = true;
        verdict_.text = "step " + std::to_string(step_) + ": " + *found;
        if (step_ < asked_->step)
          verdict_.text += " (on the way to step " + std::to_string(asked_->step) + ")";
        return;
      }
    }
    if (step_ < asked_->step) return;
    ended_ = verdict_.same = true;
    verdict_.text = "step " + std::to_string(step_) + " is as recorded";
    if (!line_) return;
    verdict_.text +=
        ": batch, random state, " +
        count(line_->gradients.size() * parameters_.size(), "gradient") + ", " +
        count(parameters_.size(), "parameter") + ", " + count(header_.buffers.size(), "buffer") +
        (recorded_->has_checkpoint(step_) ? ", " + count(states_.size(), "state") : std::string());
  }

  static std::string count(size_t n, const std::string& what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  }

  CheckpointLine checkpoint_line() const {
    CheckpointLine line{step_, hashes_of(parameters_), hashes_of(buffers()), {}};
    for (const auto& [optimizer, parameter] : states_) {
      const auto found = optimizer->state().find(parameter.impl());
      line.states.push_back(found == optimizer->state().end() ? 0 : hash_of_state(*found->second));
    }
    return line;
  }

  static uint64_t hash_of_state(const optim::OptimizerParamState& state) {
    serialize::OutputArchive archive;
    state.serialize(archive);
    const serialize::Safetensors content = archive.to_safetensors();
    std::string text;
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : content.tensors) {
      text += name + ",";
      tensors.push_back(tensor);
    }
    for (const auto& [key, value] : content.metadata) text += key + "=" + value + ",";
    return hash_of(text + hex_of(tensors));
  }

  std::vector<Tensor> buffers() const {
    std::vector<Tensor> all;
    for (const nn::Module* module : modules_)
      for (const auto& item : module->named_buffers()) all.push_back(item.value());
    return all;
  }

  Device leading_device() const {
    return parameters_.empty() ? Device(kCPU, 0) : parameters_[0].device();
  }

  // Weights and batches are drawn on the host, masks where the model is. A run on CPUs draws from
  // its leading device alone, whichever that is.
  uint64_t random_state() const {
    std::string text;
    const Device leading = leading_device();
    for (const Device device : {leading.is_cpu() ? leading : Device(kCPU, 0), leading}) {
      const GeneratorState state = default_generator(device).get_state();
      text += hex(state.seed) + hex(state.offset);
      if (state.mersenne)
        for (const uint8_t byte : state.mersenne->bytes()) text += static_cast<char>(byte);
    }
    return hash_of(text);
  }

  Checkpoint& parts_;
  LedgerOptions options_;
  std::optional<ToVerify> asked_;
  int64_t observed_step_ = 0;

  std::vector<Tensor> parameters_;
  std::vector<const nn::Module*> modules_;
  std::vector<const optim::Optimizer*> optimizers_;
  std::vector<std::pair<const optim::Optimizer*, Tensor>> states_;
  Header header_;

  bool begun_ = false, ended_ = false;
  int64_t step_ = 0;  // made so far
  std::optional<StepLine> line_;
  std::shared_ptr<OperationHashes> operations_;
  std::optional<autograd::GraphObserverGuard> guard_;
  LedgerWriter writer_;
  std::optional<ReadLedger> recorded_;
  Verdict verdict_;
};

// ---- Ledger -------------------------------------------------------------------------------------

Ledger::Ledger(Checkpoint& parts, LedgerOptions options)
    : impl_(std::make_unique<Impl>(parts, std::move(options))) {}
Ledger::~Ledger() = default;

Ledger& Ledger::watch(const nn::Module& module, const std::string& prefix) {
  impl_->watch(module, prefix);
  return *this;
}
Ledger& Ledger::watch(const optim::Optimizer& optimizer) {
  impl_->watch(optimizer);
  return *this;
}

int Ledger::run(int64_t steps, const std::function<void()>& step, int64_t done) {
  if (!verifies()) {
    for (done = begin(done); done < steps; ++done) {
      step();
      end_step();
    }
    return 0;
  }
  try {
    for (begin(); !has_ended();) {
      step();
      end_step();
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "verify: %s\n", e.what());
    return 2;
  }
  std::printf("verify: %s\n", verdict().text.c_str());
  return verdict().same ? 0 : 1;
}

void Ledger::batch(const std::vector<Tensor>& tensors) { impl_->batch(tensors); }
void Ledger::gradients() { impl_->gradients(); }
int64_t Ledger::begin(int64_t done) { return impl_->begin(done); }
void Ledger::end_step() { impl_->end_step(); }
void Ledger::save_checkpoint() { impl_->save_checkpoint(); }
bool Ledger::is_on() const { return impl_->is_on(); }
const std::string& Ledger::path() const { return impl_->path(); }
bool Ledger::verifies() const { return impl_->verifies(); }
bool Ledger::has_ended() const { return impl_->has_ended(); }
const Verdict& Ledger::verdict() const { return impl_->verdict(); }

}  // namespace ledger
}  // namespace ramet
