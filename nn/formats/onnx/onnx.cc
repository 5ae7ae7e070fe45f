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
#include "nn/formats/onnx/layers_internal.h"
#include "nn/formats/onnx/tensors_internal.h"
#include "runtime/base/atomic_file.h"
#include "runtime/capture/capture.h"

namespace ramet::formats {
namespace {

constexpr const char* kOp = "export_onnx";

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
      tensors_.parameter(t, item.key());
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

  /// After the forward: what it caught was thrown all the same.
  void check() const {
    if (refusal_) std::rethrow_exception(refusal_);
    if (!calls_.empty()) caught();
  }

  OnnxGraph& graph() { return graph_; }
  const OnnxTensors& tensors() const { return tensors_; }
  void know(const Tensor& t, const std::string& name) { tensors_.know(t, name); }
  /// Dimension `dim` of this input is the batch, whose extent is free and is now `extent`.
  void batch(const std::string& input, int64_t dim, int64_t extent) {
    if (tensors_.batch.input.empty()) tensors_.batch = {input, dim, extent, ""};
  }
  std::string name_of(const Tensor& t, const std::string& whose) {
    const std::string where = calls_.empty() ? "" : calls_.back().path;
    return t.defined() ? tensors_.name_of(t, where, whose) : "";
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
    const std::vector<std::string> names = layer->add(graph_, call, module);
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

// Whole numbers that differ from the example's. They are in its range, with `more` at the upper
// end. Of bools the opposite.
Tensor other_whole_numbers(const Tensor& example, int64_t more) {
  const Tensor x = example.to(kLong);
  const bool is_bool = example.scalar_type() == kBool;
  const int64_t low = is_bool ? 0 : x.min().item<int64_t>();
  const int64_t range = is_bool ? 2 : x.max().item<int64_t>() - low + 1 + more;
  // Each is moved along the range by a step of its own, which is not the range itself.
  const Tensor step = (arange(x.numel(), TensorOptions(kLong)) * 7 + 3)
                          .remainder(std::max<int64_t>(range - 1, 1))
                          .add(1)
                          .view(x.sizes())
                          .to(x.device());
  return ((x - low + step).remainder(range) + low).to(example.scalar_type());
}

// Numbers in the range of the example's that do not repeat: where one operation or another one
// would give the same for the example, they differ here.
Tensor other_numbers(const Tensor& example, double phase) {
  if (!example.is_floating_point()) return other_whole_numbers(example, 1);
  double low = example.min().to(kDouble).item<double>();
  double high = example.max().to(kDouble).item<double>();
  if (!std::isfinite(high - low)) low = high = 0;
  if (!(high - low > 1e-6)) low -= 1, high += 1;
  // Multiples of the inverse of the golden ratio, without their whole parts.
  Tensor t = arange(example.numel(), TensorOptions(kDouble)) * 0.61803398874989484820 + phase;
  t = (t - t.floor()) * (high - low) + low;
  return t.view(example.sizes()).to(example.device(), example.scalar_type()).clone();
}

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
    ProtoMessage shape;
    for (int64_t d = 0; d < x.dim(); ++d) {
      ProtoMessage extent;
      const bool free = options.batch_dim() && wrap_dim(kOp, *options.batch_dim(), x.dim()) == d;
      if (free) watch.batch(name, d, x.size(d));
      shape.message(1, free ? extent.text(2, "batch") : extent.integer(1, x.size(d)));
    }
    watch.graph().input(name, x.scalar_type(), shape);
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
    ProtoMessage shape;
    for (int64_t d = 0; d < y.dim(); ++d) {
      ProtoMessage extent;
      const bool free =
          like && like->outputs[i].dim() == y.dim() && like->outputs[i].size(d) != y.size(d);
      shape.message(1, free ? extent.text(2, "batch") : extent.integer(1, y.size(d)));
    }
    watch.graph().output(name, value, y.scalar_type(), shape);
    y = y.detach();
  }
  result.constants = watch.tensors().constants();
  result.operators = watch.graph().operators();
  result.bytes = watch.graph().bytes();
  return result;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const Tensor x = a.detach().to(Device(kCPU, 0)).contiguous(),
               y = b.detach().to(Device(kCPU, 0)).contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
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
       c.whose.empty() ? std::string("an output") : "what '" + c.whose + "' is given", ", ",
       describe(c.tensor), ", is ", why);
}
constexpr const char* kMade =
    "made there, of something that is not recorded; expected what comes from an input, or a "
    "buffer. If no value of an input changes it: OnnxOptions().made_constants(true)";
constexpr const char* kChanged =
    "made there, and changes with the inputs' values by something that is not recorded";
constexpr const char* kOverwritten = "written by the forward where nothing is recorded";

// Inputs that change what was computed from them without a history, comparisons above all. Floating
// point inputs are filled with `value`; whole numbers are in the other order. Empty where that
// changes no input.
std::vector<Tensor> probe(const std::vector<Tensor>& inputs, double value) {
  std::vector<Tensor> out;
  bool integers = false, changed = false;
  for (const Tensor& x : inputs) {
    const bool floating = x.is_floating_point();
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
    out.push_back(floating ? full_like(x, value) : x.dim() == 0 ? x.clone() : x.flip(dims));
    integers = integers || !floating;
    changed = changed || (!floating && !same_bits(x, out.back()));
  }
  return integers && !changed ? std::vector<Tensor>() : out;
}

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

// Two extents for a free batch. No other dimension of inputs, parameters and buffers has them: a
// size that is the batch's can be told by its number.
std::pair<int64_t, int64_t> batches(const nn::Module& module, const std::vector<Tensor>& inputs,
                                    const OnnxOptions& options) {
  if (!options.batch_dim()) return {0, 0};
  std::set<int64_t> taken;
  for (const Tensor& x : inputs)
    for (int64_t d = 0; x.defined() && d < x.dim(); ++d)
      if (d != wrap_dim(kOp, *options.batch_dim(), x.dim())) taken.insert(x.size(d));
  for (const auto& list : {module.named_parameters(), module.named_buffers()})
    for (const auto& item : list)
      if (item.value().defined())
        for (const int64_t n : item.value().sizes()) taken.insert(n);
  std::vector<int64_t> free;
  const Tensor& x = inputs[0];
  const int64_t own = x.defined() ? x.size(*options.batch_dim()) : 1;
  if (own > 1 && !taken.count(own)) free.push_back(own);
  for (const int64_t prime : {3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67})
    if (!taken.count(prime) && prime != own) free.push_back(prime);
  free.insert(free.end(), {71, 73});
  return {free[0], free[1]};
}

}  // namespace

std::string onnx_bytes(nn::Module& module, const std::vector<Tensor>& inputs,
                       const OnnxOptions& options, const OnnxForward& forward) {
  capture::refuse(kOp, "it runs the module's forward twice");
  RAMET_CHECK(!InferenceMode::is_enabled(), kOp, "called in inference mode, which records nothing");
  const auto [batch, other_batch] = batches(module, inputs, options);
  const auto of_batch = [&, dim = options.batch_dim()](const Tensor& x, int64_t extent) {
    if (!dim) return x.clone();
    const int64_t d = wrap_dim(kOp, *dim, x.dim());
    return x.index_select(d, arange(extent, TensorOptions(kLong)).remainder(x.size(d)));
  };
  std::vector<Tensor> first, second;
  for (const Tensor& x : inputs) {
    RAMET_CHECK(x.defined() && x.numel() > 0, kOp, "got ",
                x.defined() ? describe(x) : "an undefined tensor",
                ", expected an example with elements");
    const NoGradGuard data;
    const Tensor example = of_batch(x.detach(), batch);
    first.push_back(example.is_floating_point() ? other_numbers(example, 0.1) : example);
    second.push_back(other_numbers(of_batch(x.detach(), other_batch), 0.7));
  }
  const auto run_other = [&] {
    // The forward may not take numbers outside of the example's range, or no others.
    for (const int64_t more : {1, 0}) try {
        return run(module, second, options, forward, nullptr);
      } catch (const Error&) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (inputs[i].is_floating_point()) continue;
          second[i] = of_batch(inputs[i].detach(), other_batch);
          if (more) second[i] = other_whole_numbers(second[i], 0);
        }
      }
    return run(module, second, options, forward, nullptr);
  };
  const Run other = run_other();
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
