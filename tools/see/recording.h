// A recording: what a program does between two moments, kept for a later view.
//
//   see::Recording r({.title = "one step", .statistics = true});
//   r.watch(*net);
//   loss = net->forward(x) ...; loss.backward(); optimizer.step();
//   r.write("step.ramet.gz");
//
// Note [What a recording sees]
// A recording holds the actions of the thread that began it. It also holds those of threads that
// work for that one: workers of devices, replicas, lanes of a backward. It does not hold other
// threads of the program, except for memory, which belongs to a device. Those threads may make
// recordings of their own at the same time, as ranks that are threads do. Recordings may be nested:
// each sees what happens while it lives.
//
// An operation is identified by the node that it makes. An operation that leaves no node (no_grad,
// operands without gradients) is known by its kernels only. It has the name of the kernel and no
// operands. If its result was dropped at once and the next operation's result lies in the same
// memory, it counts as part of that operation. A cast of autocast is known with its operands, node
// or not, and so is how often it was used again. Nodes from before the recording appear with their
// edges once an edge leads to them; they have no operation.
//
// A wait of the host for a GPU is an operation too, with the time of the wait. Such waits are
// item(), a copy to the host, printing and synchronize(). The operation is called "item", "copy",
// "print" or "synchronize", or to() where that leaves a node.
//
// A kernel on a GPU begins and ends when the host queues it, since no thread waits for the GPU. The
// GPU's own time is not in a recording. Calls that a captured step makes again are marked; kernels
// that a GPU runs as a graph are no calls at all.
//
// Without a recording an operation costs nothing more, see Note [Observing the graph] in
// autograd/graph/graph_observer.h. During one, an operation costs some microseconds. A statistic
// costs two passes over the tensor (0.5 to 1 ns an element) and, on a GPU, a wait. With statistics
// a step of a small CNN or MLP takes three to four times as long on a CPU.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "nn/module/module.h"
#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

struct RecordingOptions {
  std::string title = {};  // stands at the top of the explorer's page
  /// Takes statistics of results, of gradients on their way and of leaves' gradients. Also of
  /// parameters and buffers, when they get their names (watch()). Takes none while a capture is
  /// made.
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

  /// Names the parameters and buffers of `module` as named_parameters() does, frozen ones too. Each
  /// operation records the submodule that called it, on replicas too. A call of forward() that goes
  /// around the module's hooks belongs to the calling module. `prefix` stands before all names.
  /// Until stop() the submodules have a hook each, so a step that was captured before is captured
  /// again. Without `calls` there are no hooks, and no operation knows its module. An Error after
  /// stop().
  void watch(nn::Module& module, const std::string& prefix = "", bool calls = true);
  template <class M>
  void watch(const nn::ModuleHolder<M>& module, const std::string& prefix = "", bool calls = true) {
    watch(static_cast<nn::Module&>(*module.ptr()), prefix, calls);
  }

  /// From now on nothing is recorded. It reads the parameters' gradients at this moment.
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
