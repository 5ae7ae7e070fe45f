#include "nn/formats/onnx/onnx.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/examples_internal.h"
#include "nn/formats/onnx/layers_internal.h"
#include "nn/formats/onnx/tensors_internal.h"
#include "runtime/base/atomic_file.h"
#include "runtime/capture/capture.h"

namespace ramet::formats {
namespace {

constexpr const char* kOp = "export_onnx";
constexpr int64_t kNoBatch = -1;  // where no extent is free

const OnnxLayers& layers() {
  static const OnnxLayers all = [] {
    OnnxLayers made;
    add_basic_layers(made);
    add_window_layers(made);
    add_norm_layers(made);
    add_recurrent_layers(made);
    add_attention_layers(made);
    add_rare_layers(made);
    add_losses(made);
    return made;
  }();
  return all;
}

const OnnxLayer* layer_of(const nn::Module& m) {
  const auto row = layers().find(typeid(m));
  return row == layers().end() ? nullptr : &row->second;
}

// The module in evaluation mode with each call watched; as it was before when this goes.
class Watch {
 public:
  explicit Watch(nn::Module& root)
      : history_(std::make_shared<OnnxHistory>()),
        observing_(history_),
        tensors_(graph_, *history_) {
    std::map<nn::Module*, std::string> paths;
    root.apply([&](const std::string& path, nn::Module& m) {
      const auto& hooks = m.forward_hooks();
      RAMET_CHECK(!hooks || (hooks->pre.empty() && hooks->post.empty() && hooks->scopes.empty()),
                  kOp, named(path), " has forward hooks, which cannot be exported");
      if (paths.emplace(&m, path).second) before_.push_back({&m, hooks, m.is_training()});
    });
    for (const auto& item : root.named_parameters()) {
      Tensor t = item.value();
      tensors_.add_parameter(t, item.key());
      if (!t.defined() || !t.is_floating_point() || t.requires_grad() || t.grad_fn()) continue;
      frozen_.push_back(t);  // what is computed from it and whole numbers is recorded, too
      t.requires_grad_(true);
    }
    for (const Before& b : before_) {
      nn::Module& m = *b.module;
      const std::string path = paths[&m];
      const OnnxLayer* const layer = layer_of(m);
      m.register_forward_pre_hook([this, path, layer](nn::Module&, std::vector<Tensor>& in) {
        kept([&] { begin(path, layer, in); });
      });
      m.register_forward_hook([this, path, layer](nn::Module& called, const std::vector<Tensor>&,
                                                  std::vector<Tensor>& out) {
        kept([&] { end(path, called, layer, out); });
      });
    }
    root.eval();
  }
  ~Watch() {
    for (Tensor& t : frozen_) t.requires_grad_(false);
    for (const Before& b : before_) b.module->set_forward_hooks(b.hooks);
    for (const Before& b : before_)  // parents come first
      if (b.module->is_training() != b.training) b.module->train(b.training);
  }
  Watch(const Watch&) = delete;

  /// Call after the forward. Throws an Error that the forward caught.
  void check() const {
    if (refusal_) std::rethrow_exception(refusal_);
    if (!calls_.empty()) caught();
  }

  OnnxGraph& graph() { return graph_; }
  const OnnxTensors& tensors() const { return tensors_; }
  void know(const Tensor& t, const std::string& name) { tensors_.know(t, name); }
  /// Dimension `dim` of this input is the batch: a free extent, which is now `extent`.
  void batch(const std::string& input, int64_t dim, int64_t extent) {
    if (tensors_.batch.input.empty()) tensors_.batch = {input, dim, extent, ""};
  }
  std::string name_of(const Tensor& t, const std::string& layer) {
    const std::string where = calls_.empty() ? "" : calls_.back().path;
    return t.defined() ? tensors_.name_of(t, where, layer) : "";
  }

 private:
  struct Before {
    nn::Module* module;
    std::shared_ptr<const nn::ModuleHooks> hooks;
    bool training;
  };

  template <class F> void kept(const F& f) {
    try {
      f();
    } catch (...) {
      if (!refusal_) refusal_ = std::current_exception();
      throw;
    }
  }
  void begin(const std::string& path, const OnnxLayer* layer, const std::vector<Tensor>& in) {
    OnnxCall call;
    call.path = path;
    if (layer && !inside_) {
      call.in = in;
      for (const Tensor& t : in) call.names.push_back(name_of(t, path));
      inside_ = true;
    }
    calls_.push_back(std::move(call));
  }
  [[noreturn]] void caught() const {
    fail(kOp, "a forward caught what ", named(calls_.back().path),
         " threw, and went on: such a way is not followed");
  }
  void end(const std::string& path, nn::Module& module, const OnnxLayer* layer,
           const std::vector<Tensor>& out) {
    if (calls_.back().path != path) caught();
    OnnxCall call = std::move(calls_.back());
    calls_.pop_back();
    if (!layer || call.names.empty()) return;
    inside_ = false;
    call.out = out;
    if (out.empty()) call.refuse("returns no tensors that the exporter knows");
    const std::vector<std::string> names = (*layer)(graph_, call, module);
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].defined()) know(out[i], names[i]);
  }

  OnnxGraph graph_;
  const std::shared_ptr<OnnxHistory> history_;
  const autograd::GraphObserverGuard observing_;
  OnnxTensors tensors_;
  std::vector<Before> before_;
  std::vector<Tensor> frozen_;   // parameters that want no gradient
  std::vector<OnnxCall> calls_;  // under way, outermost first
  bool inside_ = false;          // of a layer: what it calls is its own affair
  std::exception_ptr refusal_;   // the first
};

struct Run {
  std::string operators, bytes;
  std::vector<Tensor> outputs;
  std::vector<OnnxTensors::Constant> constants;
};

std::vector<std::string> names_of(const char* what, const std::vector<std::string>& given,
                                  size_t count) {
  if (!given.empty()) {
    RAMET_CHECK(given.size() == count, kOp, "got ", given.size(), " names of ", what,
                "s, expected ", count);
    return given;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i)
    names.push_back(count == 1 ? what : what + ("_" + std::to_string(i)));
  return names;
}

// is_batch(d): has dimension d of `t` the free extent?
template <class F> ProtoMessage shape_of(const Tensor& t, const F& is_batch) {
  ProtoMessage shape;
  for (int64_t d = 0; d < t.dim(); ++d) {
    ProtoMessage extent;
    shape.message(1, is_batch(d) ? extent.text(2, "batch") : extent.integer(1, t.size(d)));
  }
  return shape;
}

// `like`: the outputs of a run with another extent of the batch; where those differ is no number.
Run run(nn::Module& module, const std::vector<Tensor>& inputs, const OnnxOptions& options,
        const OnnxForward& forward, const Run* like) {
  const AutoGradMode recording(true);
  Watch watch(module);
  const auto names = names_of("input", options.input_names(), inputs.size());
  std::vector<Tensor> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor x = inputs[i];
    // No leaf: those may not be written in place.
    if (x.is_floating_point()) x = x.requires_grad_().clone();
    const std::string name = watch.graph().unused(names[i]);
    RAMET_CHECK(name == names[i] && !name.empty(), kOp, "got the input's name '", names[i],
                "' twice");
    watch.know(x, name);
    const int64_t batch =
        options.batch_dim() ? wrap_dim(kOp, *options.batch_dim(), x.dim()) : kNoBatch;
    if (batch != kNoBatch) watch.batch(name, batch, x.size(batch));
    watch.graph().input(name, x.scalar_type(), shape_of(x, [&](int64_t d) { return d == batch; }));
    given.push_back(std::move(x));
  }
  Run result;
  result.outputs = forward(given);
  watch.check();
  RAMET_CHECK(!result.outputs.empty(), kOp, "the module returns no tensors");
  const auto out_names = names_of("output", options.output_names(), result.outputs.size());
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    Tensor& y = result.outputs[i];
    const std::string value = watch.name_of(y, "");
    const std::string name = watch.graph().unused(out_names[i]);
    RAMET_CHECK(name == out_names[i], kOp, "got the output's name '", out_names[i],
                "', which something else in the graph has");
    const Tensor* const other = like && i < like->outputs.size() ? &like->outputs[i] : nullptr;
    const auto is_batch = [&](int64_t d) {
      return other && other->dim() == y.dim() && other->size(d) != y.size(d);
    };
    watch.graph().output(name, value, y.scalar_type(), shape_of(y, is_batch));
    y = y.detach();
  }
  result.constants = watch.tensors().constants();
  result.operators = watch.graph().operators();
  result.bytes = watch.graph().bytes();
  return result;
}

// Which constants of a run are new tensors in another one: the forward makes them.
std::vector<size_t> made_anew(const Run& a, const Run& b) {
  std::vector<size_t> places;
  for (size_t i = 0; i < a.constants.size() && i < b.constants.size(); ++i)
    if (!a.constants[i].tensor.is_set_to(b.constants[i].tensor)) places.push_back(i);
  return places;
}
[[noreturn]] void refuse_constant(const OnnxTensors::Constant& c, const char* why) {
  fail(kOp, "in the forward of ", named(c.where), ": ",
       c.layer.empty() ? std::string("an output") : "what '" + c.layer + "' is given", ", ",
       describe(c.tensor), ", is ", why);
}
constexpr const char* kMade =
    "made there, of something that is not recorded; expected what comes from an input, or a "
    "buffer. If no value of an input changes it: OnnxOptions().made_constants(true)";
constexpr const char* kChanged =
    "made there, and changes with the inputs' values by something that is not recorded";
constexpr const char* kOverwritten = "written by the forward where nothing is recorded";

// What a forward makes may come from the inputs. Other inputs show most of that, not all: a
// comparison with a number that no probe has looks like a constant. So the caller has to say that
// there are constants.
void check_constants(const Run& run_of_first, const Run& other, const OnnxOptions& options,
                     const std::vector<Tensor>& first,
                     const std::function<Run(const std::vector<Tensor>&)>& run_with) {
  for (size_t i = 0; i < run_of_first.constants.size() && i < other.constants.size(); ++i) {
    const OnnxTensors::Constant &a = run_of_first.constants[i], &b = other.constants[i];
    if (a.tensor.is_set_to(b.tensor) && a.version != b.version) refuse_constant(a, kOverwritten);
  }
  const std::vector<size_t> places = made_anew(run_of_first, other);
  if (places.empty()) return;
  if (!options.made_constants()) refuse_constant(run_of_first.constants[places[0]], kMade);
  const auto compare = [&](const Run& again) {
    for (const size_t i : places) {
      const OnnxTensors::Constant& c = run_of_first.constants[i];
      if (i >= again.constants.size() || !same_bits(c.tensor, again.constants[i].tensor))
        refuse_constant(c, kChanged);
    }
  };
  compare(other);
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL, 0.}) {
    const std::vector<Tensor> inputs = probe(first, value);
    if (inputs.empty()) break;
    std::optional<Run> again;
    try {
      again = run_with(inputs);
    } catch (const Error&) {}  // a forward that does not take such numbers
    if (again) compare(*again);
  }
}

}  // namespace

std::string onnx_bytes(nn::Module& module, const std::vector<Tensor>& inputs,
                       const OnnxOptions& options, const OnnxForward& forward) {
  capture::refuse(kOp, "it runs the module's forward twice");
  RAMET_CHECK(!InferenceMode::is_enabled(), kOp, "called in inference mode, which records nothing");
  const auto [batch, other_batch] = batches(module, inputs, options.batch_dim());
  const auto of_batch = [&, dim = options.batch_dim()](const Tensor& x, int64_t extent) {
    if (!dim) return x.clone();
    const int64_t d = wrap_dim(kOp, *dim, x.dim());
    return x.index_select(d, arange(extent, TensorOptions(kLong)).remainder(x.size(d)));
  };
  bool integers = false;
  for (const Tensor& x : inputs) {
    RAMET_CHECK(x.defined() && x.numel() > 0, kOp, "got ",
                x.defined() ? describe(x) : "an undefined tensor",
                ", expected an example with elements");
    integers = integers || !x.is_floating_point();
  }
  // The inputs with other floating-point numbers, and with the whole numbers that `whole` makes.
  const auto numbers = [&](int64_t extent, double phase, const auto& whole) {
    const NoGradGuard data;
    std::vector<Tensor> out;
    for (const Tensor& x : inputs) {
      const Tensor example = of_batch(x.detach(), extent);
      out.push_back(example.is_floating_point() ? other_numbers(example, phase) : whole(example));
    }
    return out;
  };
  const auto as_given = [](const Tensor& x) { return x; };
  const std::vector<Tensor> first = numbers(batch, 0.1, as_given);
  const auto run_other = [&](const auto& whole) {
    return run(module, numbers(other_batch, 0.7, whole), options, forward, nullptr);
  };
  // A forward may take no whole numbers outside of the example's range, or no others than its own.
  const Run other = [&] {
    for (const int64_t more : {1, 0})
      if (integers) try {
          return run_other([&](const Tensor& x) { return other_whole_numbers(x, more); });
        } catch (const Error&) {}
    return run_other(as_given);
  }();
  const Run made = run(module, first, options, forward, options.batch_dim() ? &other : nullptr);
  check_constants(made, other, options, first, [&](const std::vector<Tensor>& probes) {
    return run(module, probes, options, forward, nullptr);
  });
  RAMET_CHECK(other.outputs.size() == made.outputs.size() && other.operators == made.operators, kOp,
              "the model does other things ",
              options.batch_dim() ? "for another extent of batch_dim" : "for other numbers",
              ", which a graph cannot");
  return made.bytes;
}

void write_onnx(const std::string& path, const std::string& bytes) {
  write_file_atomically(path, bytes);
}

}  // namespace ramet::formats
