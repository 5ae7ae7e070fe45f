// Runs one draw of one case in one arm: values, gradients, gradients of gradients. Every arm
// includes it, and then its file of cases:
//
//   CASE("name", "functions it covers") { draws from d }
//
// What the words of forms.h offer (CALL, METHOD and so on) is covered without being named.
#pragma once
#include <set>
#include <utility>

#include "tools/compare/draw.h"

namespace {

struct Case {
  const char* name;
  std::string covers;
  void (*run)(Draw&);
};
/// The cases of this arm's file.
std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}
struct Listed {
  Listed(void (*run)(Draw&), const char* name, const char* covers = "") {
    cases().push_back({name, covers, run});
  }
};

struct Runner {
  std::deque<Result> results;
  std::vector<CompareResult> plain;
  std::string text, message, known;
  CompareReport report;
  double scale = 1;

  void keep(Tensor t, const std::string& label, int stage, bool with_strides = false) {
#ifdef RAMET_COMPARE_TORCH
    if (t._is_zerotensor()) t = api::zeros(t.sizes(), t.scalar_type());  // has no memory
#endif
    Result r;
    r.label = label;
    r.stage = stage;
    r.dtype = t.scalar_type();
    r.with_strides = with_strides;
    for (int64_t d = 0; d < t.dim(); ++d) {
      r.sizes.push_back(t.size(d));
      r.strides.push_back(t.stride(d));
    }
    const char* data = static_cast<const char*>(t.data_ptr());
    const ScalarType type = r.dtype;
    each_offset(r.sizes, r.strides, [&](int64_t offset) {
      const char* p = data + static_cast<size_t>(offset) * bytes_of(type);
      if (floating(type)) {
        const double x = load_real(p, type);
        r.reals.push_back(x);
        if (std::isfinite(x)) scale = std::max(scale, std::fabs(x));
      } else {
        r.wholes.push_back(load_whole(p, type));
      }
    });
    results.push_back(std::move(r));
  }
  static void measure(const Tensor& t, double& scale) {
    Runner r;
    r.keep(t, "", 0);
    scale = std::max(scale, r.scale);
  }
  /// A random tensor like each of these. No two elements share memory: a leaf of that kind has no
  /// gradient that two libraries would agree on.
  static Tensors cotangents_of(Draw& draw, const Tensors& outputs, bool graph) {
    Tensors all;
    for (const Tensor& y : outputs) {
      Sizes sizes;
      for (int64_t d = 0; d < y.dim(); ++d) sizes.push_back(y.size(d));
      const size_t inputs = draw.inputs_.size();
      all.push_back(draw.tensor(sizes, y.scalar_type(), Values::Finite, graph, false));
      draw.inputs_.resize(inputs);
    }
    return all;
  }

  void run(const Case& which, Draw& draw) {
    int stage = 0;
    int thrown = -1;
    try {
      which.run(draw);
      Tensors outputs;
      int number = 0;
      for (const Draw::Output& o : draw.outputs_) {
        keep(o.tensor, std::string(o.label) + " " + std::to_string(number++), 0, o.with_strides);
        if (o.tensor.requires_grad()) outputs.push_back(o.tensor);
      }
      for (const Tensor& x : draw.inputs_) measure(x, scale);
      if (draw.gradients && !draw.inputs_.empty()) {
        // Whether there is a graph is itself compared.
        results.push_back(
            {"requires_grad", api::kLong, 1, {}, {}, false, {}, {int64_t(outputs.size())}});
        stage = 1;
        if (!outputs.empty()) later_stages(draw, outputs, stage);
      }
    } catch (const std::exception& e) {
      thrown = stage;
      message = e.what();
      message = message.substr(0, message.find("\nException raised from"));
    }
    finish(draw, thrown);
  }
  void later_stages(Draw& draw, const Tensors& outputs, int& stage) {
    const bool twice = draw.second && !draw.special_ && draw.flag(.6);
    const Tensors cotangents = cotangents_of(draw, outputs, twice);
    // For every input, though not each may have a second gradient: both arms draw the same.
    const Tensors drawn = twice ? cotangents_of(draw, draw.inputs_, false) : Tensors();
    const Tensors first = api::autograd::grad(outputs, draw.inputs_, cotangents, true, twice, true);
    Tensors again, more;
    for (size_t i = 0; i < first.size(); ++i) {
      const std::string label = "gradient of input " + std::to_string(i);
      keep_gradient(first[i], draw.inputs_[i], label, 1);
      if (!twice || !first[i].defined() || !first[i].requires_grad()) continue;
      again.push_back(first[i]);
      more.push_back(drawn[i]);
    }
    for (const Tensor& v : cotangents) measure(v, scale);
    stage = 2;
    if (!twice || again.empty()) return;
    Tensors wanted = draw.inputs_;
    for (const Tensor& v : cotangents)
      if (v.requires_grad()) wanted.push_back(v);
    const Tensors second = api::autograd::grad(again, wanted, more, true, false, true);
    for (size_t i = 0; i < second.size(); ++i) {
      const bool own = i < draw.inputs_.size();
      const std::string label =
          own ? "second gradient of input " + std::to_string(i)
              : "second gradient of cotangent " + std::to_string(i - draw.inputs_.size());
      keep_gradient(second[i], wanted[i], label, 2);
    }
  }
  /// An undefined gradient counts as zeros: no library promises one of the two.
  void keep_gradient(const Tensor& g, const Tensor& like, const std::string& label, int stage) {
    keep(g.defined() ? g.detach() : api::zeros_like(like.detach()), label, stage);
  }
  void finish(Draw& draw, int thrown) {
    text = draw.text();
    known = draw.known_;
    for (const Result& r : results)
      plain.push_back({r.label.c_str(), dtype_name(r.dtype), r.stage,
                       static_cast<int>(r.sizes.size()), r.sizes.data(),
                       r.with_strides ? r.strides.data() : nullptr,
                       static_cast<int64_t>(floating(r.dtype) ? r.reals.size() : r.wholes.size()),
                       floating(r.dtype) ? r.reals.data() : nullptr,
                       floating(r.dtype) ? nullptr : r.wholes.data()});
    report = {thrown,
              message.c_str(),
              text.c_str(),
              known.c_str(),
              dtype_name(draw.coarsest_),
              scale,
              draw.slack,
              draw.strict,
              static_cast<int>(plain.size()),
              plain.data()};
  }
};

// ---- the arm's entry points

const CompareReport* run_case(int index, uint64_t seed, uint64_t number) {
  static Runner* last[2] = {nullptr, nullptr};
  delete std::exchange(last[0], last[1]);
  last[1] = new Runner;
  const Case& which = cases()[static_cast<size_t>(index)];
  Draw draw(seed, which.name, number);
  last[1]->run(which, draw);
  return &last[1]->report;
}
const char* case_name(int index) { return cases()[static_cast<size_t>(index)].name; }
/// Asked of some draws, since a draw may leave some forms out.
const char* names_covered(int index) {
  static std::string text;
  const Case& which = cases()[static_cast<size_t>(index)];
  std::set<std::string> offered;
  for (uint64_t number = 0; number < 60; ++number) {
    Draw draw(1, which.name, number);
    draw.offered = &offered;
    try {
      which.run(draw);
    } catch (const std::exception&) {}
  }
  text = which.covers;
  for (const std::string& name : offered) text += (text.empty() ? "" : " ") + name;
  return text.c_str();
}
CompareArm arm_of_cases() {
  return {static_cast<int>(cases().size()), case_name, names_covered, run_case};
}

}  // namespace

#define CASE(...) RAMET_COMPARE_CASE(__COUNTER__, __VA_ARGS__)
#define RAMET_COMPARE_CASE(n, ...) RAMET_COMPARE_CASE_(n, __VA_ARGS__)
#define RAMET_COMPARE_CASE_(n, ...)               \
  void case_##n(Draw& d);                         \
  const Listed listed_##n(case_##n, __VA_ARGS__); \
  void case_##n(Draw& d)
