#include "tools/see/recording.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>

#include "autograd/grad_mode.h"
#include "runtime/base/config.h"
#include "runtime/base/demangle.h"
#include "tools/see/findings.h"
#include "tools/see/recorder_internal.h"
#include "tools/see/recording_file.h"
#include "tools/see/source_lines.h"
#include "tools/see/statistics_of.h"

namespace ramet {
namespace see {

namespace {

using autograd::Node;

std::string program_name() {
  const std::string path = program_invocation_short_name;
  return path;
}

std::string utc(std::time_t seconds) {
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// "ramet::nn::LinearImpl" -> "Linear"
std::string type_name(const nn::Module& module) {
  std::string name = module.name();
  if (const size_t at = name.rfind("::"); at != std::string::npos) name.erase(0, at + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

}  // namespace

// ---- what a recorder knows at the end

void Recorder::stop() {
  std::unique_lock lock(mutex_);
  if (stopped_) return;
  for (auto& [id, t] : threads_)
    if (t.running.empty() && t.walks == 0) leave_unclaimed(t);
  data_.duration = now();
  stopped_ = true;
  lock.unlock();
  for (const Named& n : named_) {
    const Tensor gradient = n.parameter ? n.tensor.grad() : Tensor();
    if (!gradient.defined()) continue;
    std::optional<Statistics> s;
    if (wants_statistics(gradient.impl())) s = statistics_of(gradient);
    lock.lock();
    const Id leaf = node_of(*static_cast<Node*>(n.tensor->node));
    gradients_[leaf] = add_tensor(gradient.impl(), add_statistics(s ? &*s : nullptr));
    lock.unlock();
  }
}

void Recorder::add_parameters(RecordingData& d) const {
  std::map<Id, Id> of_leaf;
  const auto add = [&](const std::string& name, Id tensor, Id leaf, bool requires_grad) {
    ParameterRow row;
    row.name = name, row.tensor = tensor, row.node = leaf, row.requires_grad = requires_grad;
    if (leaf >= 0) {
      of_leaf[leaf] = d.nodes[static_cast<size_t>(leaf)].parameter =
          static_cast<Id>(d.parameters.size());
      if (const auto g = gradients_.find(leaf); g != gradients_.end()) row.gradient = g->second;
      if (const auto c = contributors_.find(leaf); c != contributors_.end())
        row.contributors.assign(c->second.begin(), c->second.end());
    }
    d.parameters.push_back(std::move(row));
  };
  for (const Named& n : named_) {
    if (!n.parameter) continue;
    Id leaf = -1, tensor = -1;
    if (n.tensor->node) {
      if (const auto at = nodes_.find(static_cast<const Node*>(n.tensor->node)); at != nodes_.end())
        leaf = at->second.id;
      if (const auto at = leaf_tensors_.find(leaf); at != leaf_tensors_.end()) tensor = at->second;
    } else if (const auto at = others_.find(n.tensor.impl()); at != others_.end()) {
      tensor = at->second.id;
    }
    add(n.name, tensor, leaf, n.tensor.requires_grad());
  }
  for (Id leaf = 0; leaf < static_cast<Id>(d.nodes.size()); ++leaf) {  // leaves without a name
    if (!d.nodes[static_cast<size_t>(leaf)].leaf || of_leaf.count(leaf)) continue;
    const auto at = leaf_tensors_.find(leaf);
    add("", at == leaf_tensors_.end() ? -1 : at->second, leaf, true);
  }
}

// The owners of the blocks at the peak. A block may have several; the first one in this order
// counts. First a parameter, a buffer, then a gradient. Then a node that saved it and has yet to
// run, and a gradient on its way. Last come the operations that use it.
void Recorder::name_owners(RecordingData& d) const {
  struct Owner {
    int rank = 0;
    std::string text;
    Id operation = -1, node = -1, parameter = -1;
  };
  std::vector<uint64_t> done(d.nodes.size(), ~uint64_t{0});  // when a node gave up what it saved
  for (const EventRow& e : d.events)
    if (e.kind == "end" && e.node >= 0) {
      uint64_t& at = done[static_cast<size_t>(e.node)];
      at = at == ~uint64_t{0} ? e.time : std::max(at, e.time);
    }
  for (MemoryRow& memory : d.memory) {
    std::map<Id, Owner> owners;
    const auto claim = [&](Id tensor, Owner o) {
      if (tensor < 0) return;
      Owner& now = owners[d.tensors[static_cast<size_t>(tensor)].storage];
      if (o.rank > now.rank) now = std::move(o);
    };
    for (size_t i = 0; i < d.parameters.size(); ++i) {
      const ParameterRow& p = d.parameters[i];
      const auto id = static_cast<Id>(i);
      const std::string name = p.name.empty() ? "a leaf" : p.name;
      claim(p.tensor, {6, "parameter " + name, -1, p.node, id});
      claim(p.gradient, {4, "gradient of " + name, -1, p.node, id});
    }
    for (const TensorRow& t : d.tensors)
      if (!t.name.empty())
        claim(static_cast<Id>(&t - d.tensors.data()), {5, "buffer " + t.name, -1, -1, -1});
    for (const EventRow& e : d.events) {
      if (e.kind == "accumulated" && e.node >= 0) {
        const Id p = d.nodes[static_cast<size_t>(e.node)].parameter;
        const std::string name = p < 0 || d.parameters[static_cast<size_t>(p)].name.empty()
                                     ? "a leaf"
                                     : d.parameters[static_cast<size_t>(p)].name;
        claim(e.tensor, {4, "gradient of " + name, -1, e.node, p});
      }
      if (e.kind == "delivered" && e.node >= 0 && e.edge >= 0) {
        const Id to = d.nodes[static_cast<size_t>(e.node)].edges[static_cast<size_t>(e.edge)].to;
        claim(e.tensor,
              {2, "gradient on its way to " + d.nodes[static_cast<size_t>(to)].name, -1, to, -1});
      }
    }
    for (size_t i = 0; i < d.operations.size(); ++i) {
      const OperationRow& op = d.operations[i];
      const auto id = static_cast<Id>(i);
      const bool keeps = op.node >= 0 && op.end <= memory.peak_time &&
                         done[static_cast<size_t>(op.node)] > memory.peak_time;
      if (keeps)
        for (const OperationRow::Saved& s : op.saved)
          claim(s.tensor,
                {3, "saved by " + d.nodes[static_cast<size_t>(op.node)].name, id, op.node, -1});
      for (const Id out : op.outputs) claim(out, {1, "output of " + op.name, id, op.node, -1});
      for (const Id in : op.inputs) claim(in, {1, "input of " + op.name, id, op.node, -1});
    }
    for (const auto& [storage, kernel] : used_) {
      const KernelRow& k = d.kernels[static_cast<size_t>(kernel)];
      Owner& now = owners[storage];
      if (now.rank > 0) continue;
      const std::string whose = k.node >= 0 ? d.nodes[static_cast<size_t>(k.node)].name
                                : k.operation >= 0
                                    ? d.operations[static_cast<size_t>(k.operation)].name
                                    : k.name;
      now = {1, "workspace of " + whose, k.operation, k.node, -1};
    }
    for (BlockRow& b : memory.at_peak)
      if (const auto o = owners.find(b.storage);
          b.storage >= 0 && o != owners.end() && o->second.rank > 0) {
        b.owner = o->second.text, b.operation = o->second.operation;
        b.node = o->second.node, b.parameter = o->second.parameter;
      }
  }
}

RecordingData Recorder::data() {
  const std::lock_guard lock(mutex_);
  RecordingData d = data_;
  d.title = options_.title;
  d.program = program_name();
  d.library = version();
  std::stable_sort(d.events.begin(), d.events.end(),
                   [](const EventRow& a, const EventRow& b) { return a.time < b.time; });
  add_parameters(d);
  for (BucketRow& bucket : d.buckets)
    for (const Id member : bucket.members) {
      const NodeRow* n = &d.nodes[static_cast<size_t>(member)];
      if (!n->leaf && !n->edges.empty() && n->edges[0].to >= 0)
        n = &d.nodes[static_cast<size_t>(n->edges[0].to)];
      if (n->parameter < 0) continue;
      const Id tensor = d.parameters[static_cast<size_t>(n->parameter)].tensor;
      if (tensor >= 0) bucket.bytes += d.tensors[static_cast<size_t>(tensor)].bytes;
    }
  for (MovementRow& m : d.movements)
    if (m.bytes == 0 && m.bucket >= 0 && m.from.empty())
      m.bytes = d.buckets[static_cast<size_t>(m.bucket)].bytes;
  d.memory = memory_.rows(devices_);
  name_owners(d);
  if (!stacks_.empty()) {
    SourceLines lines;
    auto known = sources_;
    for (const auto& [operation, stack] : stacks_) {
      Id& source = d.operations[static_cast<size_t>(operation)].source;
      if (source >= 0) continue;  // a script's line
      SourceRow row = lines.program_line(stack);
      if (row.file.empty() && row.function.empty()) continue;
      const auto [at, fresh] =
          known.try_emplace({row.file, row.function, row.line}, static_cast<Id>(d.sources.size()));
      if (fresh) d.sources.push_back(std::move(row));
      source = at->second;
    }
  }
  if (gpus_)
    d.notes.push_back(
        "Kernels of GPUs begin and end when the host queues them: how long the card took is not "
        "known.");
  for (const DeviceRow& device : d.devices)
    if (device.kind == "emulated gpu") {
      d.notes.push_back(
          "Emulated GPUs run their kernels on this machine's processor: their times say nothing "
          "about a card.");
      break;
    }
  if (replays_)
    d.notes.push_back(
        "Kernels that a captured step made again are marked. A replay makes no nodes, so its "
        "operations and its backward are not here.");
  if (dropped_)
    d.notes.push_back(std::to_string(dropped_) + " rows came after the first " +
                      std::to_string(options_.most_rows) + " and were not kept.");
  return d;
}

// ---- Recording

struct Recording::State {
  std::shared_ptr<Recorder> recorder;
  std::optional<autograd::GraphObserverGuard> guard;
  uint64_t observer = 0, memory = 0;
  const std::thread::id thread = std::this_thread::get_id();
  int64_t began = 0;
  struct Hook {
    std::weak_ptr<nn::Module> life;
    nn::Module* module;
    bool owned;
    unsigned handle;
  };
  std::vector<Hook> hooks;
  bool stopped = false;

  void remove_hooks() {
    for (const Hook& h : hooks)
      if (const auto alive = h.life.lock(); alive || !h.owned)
        h.module->remove_forward_hook(h.handle);
    hooks.clear();
  }
};

Recording::Recording(RecordingOptions options) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.began = std::chrono::duration_cast<std::chrono::microseconds>(
                std::chrono::system_clock::now().time_since_epoch())
                .count();
  if (options.source_lines) (void)return_addresses();  // the first one loads a library
  s.recorder = std::make_shared<Recorder>(options);
  const std::weak_ptr<Recorder> to = s.recorder;
  Observer observer;
  observer.scope_begin = [to](const Scope& scope) {
    if (const auto r = to.lock()) r->on_scope(scope, true);
  };
  observer.scope_end = [to](const Scope& scope) {
    if (const auto r = to.lock()) r->on_scope(scope, false);
  };
  observer.kernel_end = [to](const KernelCall& call) {
    if (const auto r = to.lock()) r->on_kernel(call);
  };
  observer.host_wait = [to](const HostWait& wait) {
    if (const auto r = to.lock()) r->on_host_wait(wait);
  };
  s.observer = add_observer(std::move(observer));
  s.memory = add_memory_observer([to](const MemoryEvent& e) {
    if (const auto r = to.lock()) r->on_memory(e);
  });
  s.guard.emplace(s.recorder);
}

Recording::~Recording() {
  try {
    stop();
  } catch (...) {}
}

void Recording::watch(nn::Module& module, const std::string& prefix, bool calls) {
  State& s = *state_;
  RAMET_CHECK(!s.stopped, "see", "watch: the recording has ended, expected one that records");
  for (const auto& item : module.named_parameters())
    s.recorder->name_tensor(item.value(), prefix + item.key(), true);
  for (const auto& item : module.named_buffers())
    s.recorder->name_tensor(item.value(), prefix + item.key(), false);
  std::map<std::string, Id> ids;
  module.apply([&](const std::string& name, nn::Module& m) {
    const size_t dot = name.rfind('.');
    const auto parent =
        name.empty() ? ids.end() : ids.find(dot == std::string::npos ? "" : name.substr(0, dot));
    const Id id = s.recorder->add_module(prefix + name, type_name(m),
                                         parent == ids.end() ? -1 : parent->second);
    ids[name] = id;
    if (!calls) return;
    const std::weak_ptr<Recorder> to = s.recorder;
    const unsigned handle =
        m.register_forward_scope([to, id](nn::Module&) -> std::shared_ptr<void> {
          const auto r = to.lock();
          if (!r || !autograd::detail::tells(*r)) return nullptr;
          r->enter_module(id);
          return {nullptr, [to](void*) {
                    if (const auto recorder = to.lock()) recorder->leave_module();
                  }};
        });
    s.hooks.push_back({m.weak_from_this(), &m, !m.weak_from_this().expired(), handle});
  });
}

void Recording::stop() {
  State& s = *state_;
  if (s.stopped) return;
  RAMET_CHECK(std::this_thread::get_id() == s.thread, "see",
              "stop: got another thread, expected the one that began the recording");
  s.stopped = true;
  s.guard.reset();
  remove_observer(s.observer);
  remove_memory_observer(s.memory);
  s.remove_hooks();
  s.recorder->stop();
}

RecordingData Recording::data() {
  stop();
  RecordingData d = state_->recorder->data();
  d.began = state_->began;
  d.created = utc(static_cast<std::time_t>(state_->began / 1000000));
  find(d);
  return d;
}

void Recording::write(const std::string& path) { see::write(data(), path); }

}  // namespace see
}  // namespace ramet
