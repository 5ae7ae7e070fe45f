// gallery: five steps of training, recorded, each as a file and as a page of the explorer.
//
//   gallery FOLDER [NAME...]    (//tools/see:gallery) NAMEs: cnn gpus ranks penalty gpt; by default
//   all
//
// Each is a process of its own, `ranks` two. Steps before the recorded one warm caches up.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/group/process_group.h"
#include "ramet.h"
#include "tools/see/explore.h"
#include "tools/see/recording.h"
#include "tools/see/recording_file.h"

namespace {

using namespace ramet;
namespace F = nn::functional;

// Runs `step` twice, and a third time inside the recording.
see::RecordingData recorded(const std::string& title, nn::Module& module,
                            const std::function<void()>& step) {
  step();
  step();
  see::Recording recording({.title = title, .statistics = true, .source_lines = true});
  recording.watch(module);
  step();
  return recording.data();
}

// ---- An image classifier ----------------------------------------------------------------------

// The fine-tuned net, with typical mistakes: detach() cuts the stem off, a norm is frozen, and no
// code uses the auxiliary classifier.
struct NetImpl : nn::Cloneable<NetImpl> {
  explicit NetImpl(bool careless_ = true) : careless(careless_) { NetImpl::reset(); }
  void reset() override {
    const auto conv = [](int64_t from, int64_t to) {
      return nn::Conv2d(nn::Conv2dOptions(from, to, 3).padding(1));
    };
    stem = register_module("stem", conv(3, 16));
    features = register_module("features", nn::Sequential());
    features->push_back("conv1", conv(16, 32));
    features->push_back("norm1", nn::BatchNorm2d(32));
    features->push_back("relu1", nn::ReLU());
    features->push_back("pool1", nn::MaxPool2d(2));
    features->push_back("conv2", conv(32, 64));
    features->push_back("norm2", nn::BatchNorm2d(64));
    features->push_back("relu2", nn::ReLU());
    features->push_back("pool2", nn::MaxPool2d(2));
    classifier = register_module("classifier", nn::Sequential());
    classifier->push_back("flatten", nn::Flatten());
    classifier->push_back("hidden", nn::Linear(64 * 8 * 8, 64));
    classifier->push_back("relu", nn::ReLU());
    classifier->push_back("dropout", nn::Dropout(0.2));
    classifier->push_back("scores", nn::Linear(64, 10));
    if (!careless) return;
    auxiliary = register_module("auxiliary", nn::Linear(32, 10));
    for (Tensor& p : features[1]->parameters()) p.set_requires_grad(false);
  }
  Tensor forward(const Tensor& x) {
    Tensor y = stem(x);
    if (careless) y = y.detach();
    return classifier->forward(features->forward(y));
  }
  bool careless;
  nn::Conv2d stem{nullptr};
  nn::Sequential features{nullptr}, classifier{nullptr};
  nn::Linear auxiliary{nullptr};
};
RAMET_MODULE(Net);

// One step of Adam on a batch; `forward` is the net or what replicates it.
template <class Forward>
see::RecordingData classify(const std::string& title, Net& net, Device device, Forward&& forward,
                            int64_t rows = 32) {
  const Tensor images = randn({rows, 3, 32, 32}), labels = randint(0, 10, {rows}, kLong).to(device);
  optim::Adam adam(net->parameters(), optim::AdamOptions(1e-3));
  return recorded(title, *net, [&] {
    adam.zero_grad();
    const Tensor loss = F::cross_entropy(forward(images), labels);
    loss.backward();
    adam.step();
  });
}

see::RecordingData replicated(const std::string& title, const std::vector<Device>& devices) {
  manual_seed(1);
  Net net;
  net->to(devices[0]);
  nn::parallel::DataParallelOptions options(devices);
  options.bucket_bytes = 64 << 10;  // several, so that some leave while the backward still runs
  nn::parallel::DataParallel<Net> parallel(net, options);
  return classify(title, net, devices[0], [&](const Tensor& x) { return parallel(x); });
}

see::RecordingData cnn() {
  return replicated("A CNN's step on two devices", {Device(kCPU, 0), Device(kCPU, 1)});
}

see::RecordingData gpus() {
  std::vector<Device> devices;
  for (DeviceIndex k = 0; k < 4; ++k) devices.emplace_back(kCUDA, k);
  return replicated("A CNN's step on four GPUs", devices);
}

// One of two processes. Rank 1 has more images than rank 0, which therefore waits for it.
see::RecordingData rank_of_two(const std::string& folder, int rank) {
  const auto group =
      distributed::init_process_group("file://" + std::filesystem::absolute(folder).string() +
                                      "/meeting?rank=" + std::to_string(rank) + "&world_size=2");
  manual_seed(1);
  Net net(/*careless_=*/false);
  distributed::DdpOptions options;
  options.bucket_bytes = 64 << 10;
  distributed::DistributedDataParallel<Net> parallel(net, group, options);
  manual_seed(static_cast<uint64_t>(2 + rank));
  see::RecordingData data = classify(
      "A CNN's step of two ranks", net, kCPU, [&](const Tensor& x) { return parallel(x); },
      16 + 16 * rank);
  group->barrier().wait();
  return data;
}

// ---- A gradient penalty -----------------------------------------------------------------------

// Gulrajani et al. 2017: the critic's gradient at points between real and made samples shall have
// length 1, so the loss goes through a backward.
see::RecordingData penalty() {
  manual_seed(1);
  nn::Sequential critic;
  critic->push_back("hidden1", nn::Linear(32, 128));
  critic->push_back("act1", nn::Tanh());
  critic->push_back("hidden2", nn::Linear(128, 128));
  critic->push_back("act2", nn::Tanh());
  critic->push_back("score", nn::Linear(128, 1));
  const Tensor real = randn({64, 32}) + 1, made = randn({64, 32});
  optim::Adam adam(critic->parameters(), optim::AdamOptions(1e-4));
  return recorded("A critic's step with a gradient penalty", *critic, [&] {
    adam.zero_grad();
    const Tensor t = rand({64, 1});
    const Tensor between = (t * real + (1 - t) * made).requires_grad_();
    const Tensor gradient =
        autograd::grad({critic->forward(between).sum()}, {between}, {}, /*retain_graph=*/true,
                       /*create_graph=*/true)[0];
    const Tensor penalty = (gradient.norm(2, 1) - 1).square().mean();
    const Tensor loss = critic->forward(made).mean() - critic->forward(real).mean() + 10 * penalty;
    loss.backward();
    adam.step();
  });
}

// ---- A language model -------------------------------------------------------------------------

constexpr int64_t kWords = 512, kWidth = 128, kLength = 64;

struct BlockImpl : nn::Cloneable<BlockImpl> {
  BlockImpl() { BlockImpl::reset(); }
  void reset() override {
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    attention = register_module(
        "attention",
        nn::MultiheadAttention(nn::MultiheadAttentionOptions(kWidth, 4).batch_first(true)));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    mlp = register_module("mlp", nn::Sequential());
    mlp->push_back("up", nn::Linear(kWidth, 4 * kWidth));
    mlp->push_back("gelu", nn::GELU());
    mlp->push_back("down", nn::Linear(4 * kWidth, kWidth));
  }
  Tensor forward(const Tensor& x, const Tensor& mask) {
    const Tensor n = norm1(x);
    const Tensor y = x + std::get<0>(attention(n, n, n, Tensor(), /*need_weights=*/false, mask));
    return y + mlp->forward(norm2(y));
  }
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::MultiheadAttention attention{nullptr};
  nn::Sequential mlp{nullptr};
};
RAMET_MODULE(Block);

struct GptImpl : nn::Cloneable<GptImpl> {
  GptImpl() { GptImpl::reset(); }
  void reset() override {
    words = register_module("words", nn::Embedding(kWords, kWidth));
    places = register_module("places", nn::Embedding(kLength, kWidth));
    blocks = register_module("blocks", nn::ModuleList());
    for (int i = 0; i < 4; ++i) blocks->push_back(Block());
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    head = register_module("head", nn::Linear(nn::LinearOptions(kWidth, kWords).bias(false)));
  }
  Tensor forward(const Tensor& text) {
    const Tensor mask = ones({kLength, kLength}, kBool).triu(1);
    Tensor x = words(text) + places(arange(kLength, kLong));
    for (size_t i = 0; i < blocks->size(); ++i) x = Block(blocks->ptr<BlockImpl>(i))(x, mask);
    return head(norm(x));
  }
  nn::Embedding words{nullptr}, places{nullptr};
  nn::ModuleList blocks{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
};
RAMET_MODULE(Gpt);

see::RecordingData gpt() {
  manual_seed(1);
  Gpt net;
  const Tensor text = randint(0, kWords, {8, kLength + 1}, kLong);
  const Tensor read = text.slice(1, 0, kLength), next = text.slice(1, 1).flatten();
  optim::AdamW adam(net->parameters(), optim::AdamWOptions(3e-4));
  return recorded("A GPT's step", *net, [&] {
    adam.zero_grad();
    const Tensor loss = F::cross_entropy(net(read).flatten(0, 1), next);
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    adam.step();
  });
}

// ---- Files and processes ----------------------------------------------------------------------

std::string file_of(const std::string& folder, const std::string& name) {
  return folder + "/" + name + ".ramet.gz";
}

// What a process of its own does; its name may be "ranks.0".
void record(const std::string& folder, const std::string& name) {
  see::RecordingData data;
  if (name == "cnn") data = cnn();
  else if (name == "gpus") data = gpus();
  else if (name == "penalty") data = penalty();
  else if (name == "gpt") data = gpt();
  else if (name == "ranks.0" || name == "ranks.1") data = rank_of_two(folder, name.back() - '0');
  else RAMET_CHECK(false, "gallery", "no such recording: ", name);
  see::write(data, file_of(folder, name));
}

int gallery(const std::string& program, const std::string& folder, std::vector<std::string> names) {
  if (names.empty()) names = {"cnn", "gpus", "ranks", "penalty", "gpt"};
  std::filesystem::create_directories(folder);
  for (const std::string& name : names) {
    std::vector<std::string> parts = {name};
    if (name == "ranks") {
      parts = {"ranks.0", "ranks.1"};
      std::filesystem::remove(folder + "/meeting");
    }
    std::vector<pid_t> children;
    for (const std::string& part : parts) {
      const pid_t child = fork();
      RAMET_CHECK(child >= 0, "gallery", "no process could be started");
      if (child == 0) {
        execl("/proc/self/exe", program.c_str(), "--record", folder.c_str(), part.c_str(), nullptr);
        _exit(127);
      }
      children.push_back(child);
    }
    bool good = true;
    for (const pid_t child : children) {
      int status = 0;
      good = waitpid(child, &status, 0) == child && status == 0 && good;
    }
    if (!good) return 1;
    if (parts.size() > 1) {
      std::vector<see::RecordingData> ranks;
      for (const std::string& part : parts) ranks.push_back(see::read(file_of(folder, part)));
      see::write(see::merge(ranks), file_of(folder, name));
    }
    const see::RecordingData data = see::read(file_of(folder, name));
    see::explore(data, folder + "/" + name + ".html");
    std::printf("%s/%s.html\n%s\n", folder.c_str(), name.c_str(), see::summary(data).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  setenv("RAMET_EMULATED_DEVICES", "4", /*overwrite=*/0);  // real ones do not read it
  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "--record") {
      record(words[1], words[2]);
      return 0;
    }
    if (words.empty() || words[0].starts_with("-")) {
      std::fputs("usage: gallery FOLDER [cnn|gpus|ranks|penalty|gpt]...\n", stderr);
      return 2;
    }
    return gallery(argv[0], words[0], {words.begin() + 1, words.end()});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gallery: %s\n", e.what());
    return 1;
  }
}
