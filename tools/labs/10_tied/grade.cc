// Compared with one device and the whole batch.
#include "tools/labs/10_tied/lab.h"

namespace ramet::labs {
namespace {

std::vector<Device> devices(int count) {
  std::vector<Device> list;
  for (int i = 0; i < count; ++i) list.push_back(Device(kCPU, static_cast<DeviceIndex>(i)));
  return list;
}

/// A model of words: embed.weight and head.weight are one tensor; scale is frozen.
NamedParameters model() {
  manual_seed(11);
  const Tensor words = randn({5, 3}, kDouble).requires_grad_();
  return {{{"embed.weight", words},
           {"mix.weight", randn({3, 3}, kDouble).requires_grad_()},
           {"scale", full({3}, 1.5, kDouble)},
           {"head.weight", words},
           {"head.bias", randn({5}, kDouble).requires_grad_()}}};
}

Tensor loss_of(NamedParameters& m, const Tensor& tokens) {
  const Tensor hidden =
      tanh(m["embed.weight"].index_select(0, tokens).mm(m["mix.weight"])) * m["scale"];
  const Tensor scores = hidden.mm(m["head.weight"].t()) + m["head.bias"];
  return scores.pow(2).sum();
}

std::vector<NamedParameters> replicas_of(const TiedLab& answer, const NamedParameters& source,
                                         int count) {
  const std::vector<Device> where = devices(count);
  std::vector<NamedParameters> replicas = answer.replicate(source, where);
  expect(replicas.size() == where.size(), "there are ", replicas.size(), " replicas for ",
         where.size(), " devices");
  for (size_t r = 0; r < replicas.size(); ++r) {
    const auto& list = replicas[r].list;
    expect(list.size() == source.list.size(), "replica ", r, " has ", list.size(),
           " parameters, expected ", source.list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const auto& [name, tensor] = list[i];
      expect(name == source.list[i].first, "parameter ", i, " of replica ", r, " is called \"",
             name, "\", expected \"", source.list[i].first, "\"");
      expect(tensor.defined(), "\"", name, "\" of replica ", r, " is undefined");
      expect(tensor.device() == where[r], "\"", name, "\" of replica ", r, " is on ",
             tensor.device().str(), ", expected ", where[r].str());
    }
  }
  return replicas;
}

std::string check_copies(const TiedLab& answer) {
  const NamedParameters source = model();
  const auto replicas = replicas_of(answer, source, 3);
  for (size_t r = 0; r < replicas.size(); ++r)
    for (size_t i = 0; i < source.list.size(); ++i) {
      const Tensor &copy = replicas[r].list[i].second, &original = source.list[i].second;
      const std::string who = words("\"", source.list[i].first, "\" of replica ", r);
      expect(copy.sizes() == original.sizes(), who, " has the shape ", copy.sizes(), ", expected ",
             original.sizes());
      expect(equal(copy.detach().to(kCPU), original.detach()), who, " has other values");
    }
  return words("3 replicas of ", source.list.size(), " parameters");
}

std::string check_memory(const TiedLab& answer) {
  const NamedParameters source = model();
  const auto replicas = replicas_of(answer, source, 2);
  for (size_t r = 0; r < replicas.size(); ++r)
    for (size_t i = 0; i < source.list.size(); ++i)
      expect(replicas[r].list[i].second.data_ptr() != source.list[i].second.data_ptr(), "\"",
             source.list[i].first, "\" of replica ", r, ", on ", devices(2)[r].str(),
             ", is the memory of the source itself: what writes there, writes into the source");
  return "nothing is shared with the source";
}

std::string check_ties(const TiedLab& answer) {
  const NamedParameters source = model();
  auto replicas = replicas_of(answer, source, 2);
  for (size_t r = 0; r < replicas.size(); ++r)
    expect(replicas[r]["embed.weight"].is_same(replicas[r]["head.weight"]),
           "\"embed.weight\" and \"head.weight\" are one tensor in the source, and two tensors in "
           "replica ",
           r, ": twice the memory, and twice the bytes that travel");
  return "one tensor in each replica";
}

// A tensor and its first row begin at one address.
std::string check_not_tied(const TiedLab& answer) {
  NamedParameters source = model();
  source.list.push_back({"first_row", source["mix.weight"].detach()[0]});
  source.list.push_back({"nothing", zeros({0, 2}, kDouble)});
  source.list.push_back({"nothing_else", zeros({0}, kDouble)});
  auto replicas = replicas_of(answer, source, 2);
  for (const auto& [name, original] : source.list)
    expect(replicas[1][name].sizes() == original.sizes(), "\"", name,
           "\" of replica 1 has the shape ", replicas[1][name].sizes(), ", expected ",
           original.sizes(), ": it was taken for another parameter");
  return "each has its own shape";
}

std::string check_gradients(const TiedLab& answer) {
  const Tensor tokens = tensor({0, 3, 1, 4, 2, 0, 3, 3}, kLong);
  NamedParameters one = model();
  loss_of(one, tokens).backward();

  NamedParameters source = model();
  auto replicas = replicas_of(answer, source, 2);
  for (size_t r = 0; r < 2; ++r)
    for (const auto& [name, tensor] : source.list)
      if (tensor.requires_grad())
        expect(replicas[r][name].requires_grad() && !replicas[r][name].is_leaf(), "\"", name,
               "\" of replica ", r, " has no history: a gradient that arrives there stays there");
  // Five rows for one replica, three for the other.
  Tensor total;
  for (size_t r = 0; r < 2; ++r) {
    const Tensor piece = tokens.narrow(0, r == 0 ? 0 : 5, r == 0 ? 5 : 3).to(devices(2)[r]);
    const Tensor loss = loss_of(replicas[r], piece).to(Device(kCPU, 0));
    total = total.defined() ? total + loss : loss;
  }
  total.backward();
  for (auto& [name, tensor] : source.list) {
    if (!tensor.requires_grad()) {
      expect(!tensor.grad().defined(), "\"", name, "\" is frozen and has a gradient");
      continue;
    }
    expect(tensor.grad().defined(), "\"", name, "\" of the source has no gradient");
    const double off = (tensor.grad() - one[name].grad()).abs().max().item<double>();
    expect(off < 1e-10, "the gradient of \"", name, "\" begins with ",
           tensor.grad().flatten()[0].item<double>(), ", and on one device with ",
           one[name].grad().flatten()[0].item<double>());
  }
  return "as on one device";
}

}  // namespace

void grade(const TiedLab& answer, Report& report) {
  report.step("names, values, devices", "chapter 8", [&] { return check_copies(answer); });
  report.step("memory of their own",
              "what does to() give where the tensor is there already? chapter 8",
              [&] { return check_memory(answer); });
  report.step("what is tied in the source is tied in a replica",
              "when are two names one parameter? chapter 8, and the small example in task.md",
              [&] { return check_ties(answer); });
  report.step("what is not tied stays so",
              "a tensor is more than the address where it begins: chapter 5, \"Views\"",
              [&] { return check_not_tied(answer); });
  report.step("gradients flow back", "which ways to copy a tensor are recorded? chapter 8",
              [&] { return check_gradients(answer); });
}

}  // namespace ramet::labs
