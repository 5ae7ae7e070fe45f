// A backward, one node at a time.
//
//   see::Stepper s(loss, *net);            // the parameters' names come from the module
//   while (s.next()) std::cout << s;       // each node with what came in and what goes on
//
//   s.break_at("fc1.weight");
//   while (s.run()) {                      // stopped before the node runs
//     std::cout << s;
//     s.set_incoming(0, s.incoming(0) * 0.5);
//   }
//
// The engine's own backward pass stops: the same nodes, the same bits. Where the graph lies on
// several devices, one thread serves their lanes in the order of captured steps.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "nn/module/arg.h"
#include "nn/module/module.h"

namespace ramet {
namespace see {

/// As the arguments of Tensor::backward.
struct StepperOptions {
  RAMET_ARG(Tensor, gradient);  // of the loss; undefined: 1, which only a scalar has
  RAMET_ARG(std::optional<bool>, retain_graph);  // default: create_graph
  /// Records the backward pass, so that its results have gradients, too.
  RAMET_ARG(bool, create_graph) = false;
};

/// Use it from the thread that made it. While it is stopped, the graph is as in the middle of a
/// backward. Nodes that have run are released (unless their graph is retained), and the leaves that
/// the backward has reached have their gradient. A Stepper that is destroyed before the end leaves
/// the graph as an exception at that place would.
class RAMET_API Stepper {
 public:
  /// Leaves with what to call them.
  using Names = std::vector<std::pair<std::string, Tensor>>;

  /// Nothing runs before the first step. `names` name leaves: net->named_parameters().pairs(). An
  /// Error where `loss` has no history, inside of a backward, on a device's worker, and while a
  /// step is captured.
  explicit Stepper(const Tensor& loss, const StepperOptions& options = {});
  Stepper(const Tensor& loss, const Names& names, const StepperOptions& options = {});
  Stepper(const Tensor& loss, const nn::Module& module, const StepperOptions& options = {});
  ~Stepper();
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  // ---- going on. False: the backward is over. What it throws these throw, and it is over then

  /// Runs the next node, or the node that it stopped before. Stops after it, before any other node
  /// gets its results. A reduction of a bucket of replicas' gradients counts as a node.
  bool next();
  /// Stops before the next node, when all of its gradients are there and its hooks have run.
  bool into();
  /// Stops before the next node that break_at() names.
  bool run();
  /// To the end, past all breakpoints.
  void finish();

  /// A node's name ("ReluBackward0"), or a leaf's: run() stops before the leaf takes its gradient.
  /// One that never comes is no error.
  void break_at(std::string name);
  /// Forgets all names of break_at().
  void clear_breaks();

  // ---- where it stands: an Error before the first step and after the last one ------------------

  /// Has the backward pass ended?
  bool over() const;
  /// Nodes that have run.
  int64_t steps() const;
  /// Has it stopped before the node (or after it)?
  bool before() const;
  /// "AddmmBackward0"; of a reduction "ReduceAdd".
  const std::string& node() const;
  /// The name of a leaf's collector, or of a reduction into named leaves; else empty.
  const std::string& leaf() const;
  /// The device on which the node runs.
  Device device() const;
  /// 0; inside a backward that a node runs (checkpoint) 1, and so on.
  int depth() const;
  /// One a slot; undefined where nothing was delivered. A reduction has none.
  const std::vector<Tensor>& incoming() const;
  const Tensor& incoming(size_t slot) const;
  /// After the node, one gradient an edge; undefined where the edge's input wants none. For a
  /// leaf's collector: its gradient now.
  const std::vector<Tensor>& outgoing() const;
  const Tensor& outgoing(size_t edge) const;
  /// Where each edge leads: "AccumulateGrad fc1.weight", empty for an input that wants no gradient.
  const std::vector<std::string>& targets() const;

  /// Before the node, the node gets this gradient; after it, the node's target does. It must have
  /// the shape, dtype and device of the present one, as a hook's result must:
  void set_incoming(size_t slot, const Tensor& gradient);
  void set_outgoing(size_t edge, const Tensor& gradient);

  /// Writes the position, and a line for each gradient: its values where they are few, else its
  /// extremes and mean.
  friend RAMET_API std::ostream& operator<<(std::ostream& out, const Stepper& s);

 private:
  struct Walk;
  std::shared_ptr<Walk> walk_;
};

}  // namespace see
}  // namespace ramet
