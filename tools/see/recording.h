// A recording: what a program does between two moments, kept to be looked at.
//
//   see::Recording r({.title = "one step", .statistics = true});
//   r.watch(*net);
//   loss = net->forward(x) ...; loss.backward(); optimizer.step();
//   r.write("step.ramet.gz");
//
// Note [What a recording sees]
// What the thread that began it does, and what other threads do for that one: workers of devices,
// replicas, lanes of a backward. Other threads of the program are not in it, but for memory, which
// is a device's; they may make recordings of their own at the same time, as ranks that are threads
// do. Recordings may be nested: each sees what happens while it lives.
//
// Operations are known by the nodes that they make. What leaves no node (no_grad, operands without
// gradients) is known by its kernels alone, and stands under the name of the kernel, without
// operands; where it was dropped at once and the next operation's result lies in its memory, it
// counts as part of that one. Nodes that were made before the recording began are there with their
// edges, without an operation, once something leads to them.
//
// Where the host waits for a GPU (item(), a copy to the host, printing, synchronize()) is an
// operation too, with the time of the wait: "item", "copy", "print", "synchronize", or to() where
// that leaves a node.
//
// A kernel on a GPU begins and ends when the host queues it, since nothing waits for the card; how
// long the card takes is not in a recording. Calls that a captured step makes again are marked;
// what a GPU runs as a graph is no call at all.
//
// While nothing is recorded an operation pays nothing, see Note [Observing the graph] in
// autograd/graph/graph_observer.h. While one is, an operation costs some microseconds, a statistic
// two passes over the tensor (0.5 to 1 ns an element) and, on a GPU, a wait: with statistics a step
// of a small CNN or MLP takes three to four times as long on a CPU.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "nn/module/module.h"
#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

struct RecordingOptions {
  std::string title = {};
  /// Of results, gradients on their way, leaves' gradients, and what parameters and buffers are
  /// when they get their names (watch()). Not while a capture is made.
  bool statistics = false;
  /// The program's lines that called operations: where it was compiled with -g; else its
  /// functions.
  bool source_lines = false;
  /// Operations, kernels, movements and events together; what comes later is counted in a note.
  size_t most_rows = size_t{1} << 20;
};

/// Begins where it is made, ends with stop() or where it is destroyed, on the thread that made it.
class RAMET_API Recording {
 public:
  explicit Recording(RecordingOptions options = {});
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Names the parameters and buffers of `module` as named_parameters() does, frozen ones too, and
  /// says in which of its submodules an operation was called, on replicas too (calls of forward()
  /// that go around the module's hooks are the caller's). `prefix` stands before all names. Until
  /// stop() the submodules have a hook each, so a step that was captured before is captured again:
  /// without `calls` there are none, and no operation knows its module. An Error after stop().
  void watch(nn::Module& module, const std::string& prefix = "", bool calls = true);
  template <class M>
  void watch(const nn::ModuleHolder<M>& module, const std::string& prefix = "", bool calls = true) {
    watch(static_cast<nn::Module&>(*module.ptr()), prefix, calls);
  }

  /// From now on nothing is recorded. Parameters are looked at now: their gradients.
  void stop();
  /// Stops, and gives what was recorded.
  RecordingData data();
  /// data() into a file (recording_file.h).
  void write(const std::string& path);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace see
}  // namespace ramet
