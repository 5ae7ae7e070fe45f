#include "tools/compat/models/values.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "nn/formats/pytorch/pt.h"

namespace ramet::models {

namespace {

void tensors_of(const IValue& value, std::vector<Tensor>& into) {
  if (value.isTensor()) {
    const Tensor& t = value.toTensor();
    if (t.is_floating_point() && t.requires_grad()) into.push_back(t);
  } else if (value.isTuple()) {
    for (const IValue& v : value.toTupleRef().elements()) tensors_of(v, into);
  } else if (value.isList()) {
    for (const IValue& v : value.toList().vec()) tensors_of(v, into);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) tensors_of(entry.value(), into);
  }
}

double largest(const Tensor& t) { return t.numel() == 0 ? 0 : t.abs().max().item<double>(); }

// As error() of make.py.
struct Comparison {
  double error = 0;
  std::string worst;

  void add(const std::string& name, const Tensor& got, const Tensor& want, double least) {
    RAMET_CHECK(got.defined(), "models", name, ": got no tensor, PyTorch has one");
    RAMET_CHECK(got.sizes() == want.sizes(), "models", name, ": got ", got.sizes(), ", expected ",
                want.sizes());
    if (want.numel() == 0) return;
    const double scale = std::max({largest(want), least, 1e-300});
    double e = largest(got.detach().to(Device(kCPU, 0)).to(kDouble) - want) / scale;
    if (std::isnan(e)) e = INFINITY;
    if (e <= error && !worst.empty()) return;
    error = e;
    worst = name;
  }
};

double least_of(const std::vector<Tensor>& want, ScalarType dtype) {
  double most = 0;
  for (const Tensor& t : want) most = std::max(most, largest(t));
  return most * (dtype == kDouble ? 1e-6 : 1e-4);
}

}  // namespace

Values::Values(const std::string& path)
    : row(formats::load_pt(path).toGenericDict()),
      loss(row.at("loss").toStringRef()),
      rate(row.at("rate").toDouble()),
      parallel(row.at("parallel").toBool()) {}

namespace {

std::vector<IValue> inputs_of(const IValue::GenericDict& draw, ScalarType dtype, Device device) {
  std::vector<IValue> made;
  for (const IValue& v : draw.at("inputs").toList().vec()) {
    if (!v.isTensor()) {
      made.push_back(v);
      continue;
    }
    const Tensor t = v.toTensor();
    made.emplace_back((t.is_floating_point() ? t.to(dtype) : t).to(device).clone());
  }
  return made;
}

}  // namespace

std::vector<IValue> Values::inputs(ScalarType dtype) const {
  return inputs_of(row, dtype, Device(kCPU, 0));
}

Forward forward(script::ScriptModule& net, const Values& values, std::vector<IValue> inputs) {
  if (values.loss == "burgers") {
    const Tensor points = inputs[0].toTensor().clone().requires_grad_();
    const Tensor u = net.forward(points);
    const Tensor du = autograd::grad({u.sum()}, {points}, {}, true, true)[0];
    const Tensor second = autograd::grad({du.select(1, 0).sum()}, {points}, {}, true, true)[0];
    const auto column = [](const Tensor& t, int64_t i) { return t.narrow(1, i, 1); };
    const Tensor rest = column(du, 1) + u * column(du, 0) - column(second, 0) * 0.01;
    return {{u, du, second}, rest.square().mean() + (u - column(points, 0).sin()).square().mean()};
  }
  Forward made;
  tensors_of(net.forward(std::move(inputs)), made.outputs);
  for (const Tensor& t : made.outputs) {
    const Tensor target =
        arange(t.numel(), TensorOptions(t.scalar_type()).device(t.device())).cos().view(t.sizes());
    const Tensor part = (t - target).square().mean();
    made.loss = made.loss.defined() ? made.loss + part : part;
  }
  RAMET_CHECK(made.loss.defined(), "models", "no result has a gradient");
  return made;
}

namespace {

Errors errors_of(const std::string& file, const Values& values, const IValue::GenericDict& draw,
                 ScalarType dtype, Device device) {
  script::LoadOptions options;
  options.device = device;
  const auto net = script::load(file, options);
  const Forward made = forward(*net, values, inputs_of(draw, dtype, device));
  made.loss.backward();
  Errors found;
  {
    const std::vector<Tensor> want = draw.at("outputs").toTensorList().vec();
    RAMET_CHECK(want.size() == made.outputs.size(), "models", "got ", made.outputs.size(),
                " outputs, expected ", want.size());
    const double least = least_of(want, dtype);
    Comparison all;
    for (size_t i = 0; i < want.size(); ++i)
      all.add("output " + std::to_string(i), made.outputs[i], want[i], least);
    found.outputs = all.error;
  }
  const auto compare = [&](const char* part, const auto& tensors, bool grads) {
    std::vector<Tensor> want;
    for (const auto& entry : draw.at(part).toGenericDict())
      want.push_back(entry.value().toTensor());
    const double least = least_of(want, dtype);
    Comparison all;
    size_t compared = 0;
    for (const auto& entry : draw.at(part).toGenericDict()) {
      const std::string& name = entry.key().toStringRef();
      const Tensor* t = tensors.find(name);
      // A name of a tied parameter, or a buffer that the graph does not use.
      if (t == nullptr && (!grads || tensors.size() == want.size())) continue;
      RAMET_CHECK(t != nullptr, "models", "the module has no ", name);
      all.add(name, grads ? t->grad() : *t, entry.value().toTensor(), least);
      ++compared;
    }
    const size_t expected = grads ? std::min(tensors.size(), want.size()) : !want.empty();
    RAMET_CHECK(compared >= expected || tensors.size() == 0, "models", part, ": compared ",
                compared, " tensors, expected ", expected);
    return all;
  };
  const Comparison grads = compare("grads", net->named_parameters(), true);
  found.grads = grads.error;
  found.worst = grads.worst;
  found.most = grads.error;
  found.buffers = compare("buffers", net->named_buffers(), false).error;
  return found;
}

}  // namespace

Errors errors(const std::string& file, const Values& values, ScalarType dtype, bool all,
              Device device) {
  Errors least;
  bool first = true;
  for (const IValue& draw : values.row.at("draws").toList().vec()) {
    const Errors now = errors_of(file, values, draw.toGenericDict(), dtype, device);
    if (first) least = now;
    if (now.grads < least.grads) least.worst = now.worst;
    least.outputs = std::min(least.outputs, now.outputs);
    least.grads = std::min(least.grads, now.grads);
    least.most = std::max(least.most, now.most);
    first = false;
    if (!all) break;
  }
  return least;
}

double loss_difference(const std::string& file, const Values& values, ScalarType dtype) {
  const auto net = script::load(file);
  optim::SGD sgd(net->parameters(), optim::SGDOptions(values.rate));
  double most = 0;
  for (const IValue& want :
       values.row.at(dtype == kDouble ? "losses" : "losses32").toList().vec()) {
    sgd.zero_grad();
    const Tensor loss = forward(*net, values, values.inputs(dtype)).loss;
    loss.backward();
    sgd.step();
    const double difference = std::abs(loss.item<double>() - want.toDouble());
    most = std::max(most, difference / std::max(1.0, std::abs(want.toDouble())));
    if (std::isnan(difference)) return INFINITY;
  }
  return most;
}

std::string result_difference(const IValue& got, const IValue& want, const std::string& place) {
  const auto items = [](const IValue& v) {
    return v.isTuple() ? v.toTupleRef().elements() : v.toList().vec();
  };
  std::ostringstream said;
  if (want.isTensor() && got.isTensor()) {
    const Tensor a = got.toTensor().detach().to(kDouble), b = want.toTensor().to(kDouble);
    if (a.sizes() == b.sizes() && allclose(a, b, 1e-9, 1e-12)) return "";
  } else if (want.isGenericDict() && got.isGenericDict()) {
    const auto ours = got.toGenericDict(), theirs = want.toGenericDict();
    if (ours.size() == theirs.size()) {
      for (const auto& entry : theirs) {
        if (!ours.contains(entry.key())) return place + ": a key is missing";
        const std::string d = result_difference(ours.at(entry.key()), entry.value(), place + "[]");
        if (!d.empty()) return d;
      }
      return "";
    }
  } else if ((want.isTuple() || want.isList()) && got.isTuple() == want.isTuple() &&
             got.isList() == want.isList()) {
    const std::vector<IValue> ours = items(got), theirs = items(want);
    if (ours.size() == theirs.size()) {
      for (size_t i = 0; i < ours.size(); ++i) {
        const std::string d =
            result_difference(ours[i], theirs[i], place + "[" + std::to_string(i) + "]");
        if (!d.empty()) return d;
      }
      return "";
    }
  } else if (want.isDouble() && got.isDouble()) {
    if (std::abs(got.toDouble() - want.toDouble()) <= 1e-9 * (1 + std::abs(want.toDouble())))
      return "";
  } else if (got.is(want)) {
    return "";
  }
  said << place << ": got " << got << ", expected " << want;
  return said.str();
}

}  // namespace ramet::models
