// Checkpoints: a run that is saved, dropped and resumed computes the same bits as one that was
// never interrupted.
#include "nn/module/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "autograd/ops.h"
#include "nn/data.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "nn/optim/lr_scheduler.h"
#include "nn/optim/sgd.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/save.h"
#include "runtime/devices/generator.h"
#include "tests/error_text.h"

namespace ramet {
namespace {

std::string temporary(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  return std::string(base ? base : "/tmp") + "/checkpoint_" + std::to_string(::getpid()) + "_" +
         name;
}

// Everything that can carry state: dropout, batch norm's buffers, two parameter groups, a schedule,
// a shuffled loader.
struct Training {
  nn::Sequential model{nullptr};
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::LRScheduler> schedule;
  std::unique_ptr<
      data::StatelessDataLoader<data::datasets::GatherDataset, data::samplers::RandomSampler>>
      loader;
  int64_t step = 0, epoch = 0;
  double total = 0;
  std::string note = "first";

  Training(uint64_t seed, bool adam, size_t workers) {
    manual_seed(7);  // the data
    const Tensor rows = randn({50, 6}), targets = randint(0, 3, {50}, kLong);
    manual_seed(seed);
    model = nn::Sequential(nn::Linear(6, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Dropout(0.3),
                           nn::Linear(8, 3));
    if (adam) {
      optimizer = std::make_unique<optim::AdamW>(model->parameters(),
                                                 optim::AdamWOptions(0.01).amsgrad(true));
    } else {
      const std::vector<Tensor> p = model->parameters();
      std::vector<optim::OptimizerParamGroup> groups;
      groups.emplace_back(std::vector<Tensor>(p.begin(), p.begin() + 2));
      groups.emplace_back(
          std::vector<Tensor>(p.begin() + 2, p.end()),
          std::make_unique<optim::SGDOptions>(optim::SGDOptions(0.2).momentum(0.5)));
      optimizer = std::make_unique<optim::SGD>(groups, optim::SGDOptions(0.1).momentum(0.9));
    }
    schedule = std::make_unique<optim::CosineAnnealingLR>(*optimizer, 21);
    loader = data::make_data_loader(data::datasets::GatherDataset(rows, targets),
                                    data::samplers::RandomSampler(50),
                                    data::DataLoaderOptions(8).workers(workers));
  }
  Checkpoint checkpoint() {
    Checkpoint c;
    c.add("model", *model)
        .add("optimizer", *optimizer)
        .add("schedule", *schedule)
        .add("loader", *loader);
    c.add("step", step).add("epoch", epoch).add("total", total).add("note", note);
    return c;
  }
  // Runs until `last` steps or the end of 3 epochs.
  void run(int64_t last) {
    while (epoch < 3) {
      for (auto& batch : *loader) {
        optimizer->zero_grad();
        const Tensor loss = cross_entropy_loss(model->forward(batch.data), batch.target);
        loss.backward();
        optimizer->step();
        schedule->step();
        total += loss.item<double>();
        if (++step == last) return;
      }
      ++epoch;
    }
  }
  std::string bits() {
    std::string all;
    const auto add = [&](const Tensor& t) {
      all.append(static_cast<const char*>(t.contiguous().data_ptr()), t.nbytes());
    };
    for (const Tensor& p : model->parameters()) add(p);
    for (const Tensor& b : model->buffers()) add(b);
    serialize::OutputArchive state;
    state << *optimizer;
    state.save_to(
        [&](const void* p, size_t n) { return all.append(static_cast<const char*>(p), n), n; });
    all.append(reinterpret_cast<const char*>(&total), sizeof(total));
    return all;
  }
};

TEST(Checkpoint, ResumedBitForBitAtEveryStep) {
  for (bool adam : {true, false}) {
    for (size_t workers : {0, 1}) {
      Training whole(1, adam, workers);
      whole.run(1000);
      ASSERT_EQ(whole.step, 21);
      const std::string expected = whole.bits();
      for (int64_t stop : {1, 3, 7, 8, 14, 20, 21}) {  // 7 steps an epoch
        const std::string path = temporary("resume");
        {
          Training first(1, adam, workers);
          first.note = "saved";
          first.run(stop);
          first.checkpoint().save(path);
        }
        Training second(99, adam, workers);  // another seed: everything has to come from the file
        second.checkpoint().load(path);
        EXPECT_EQ(second.step, stop);
        EXPECT_EQ(second.note, "saved");
        second.run(1000);
        EXPECT_EQ(second.step, 21);
        EXPECT_TRUE(second.bits() == expected) << (adam ? "AdamW" : "SGD") << ", " << workers
                                               << " workers, resumed after step " << stop;
        ::unlink(path.c_str());
      }
    }
  }
}

TEST(Checkpoint, IsReadableAsSafetensors) {
  const std::string path = temporary("tensors");
  Training t(1, true, 0);
  t.run(2);
  t.checkpoint().save(path);
  const serialize::Safetensors file = serialize::load_safetensors(path);
  const Tensor* weight = file.find("model.0.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_TRUE(weight->equal(t.model->parameters()[0].detach()));
  ::unlink(path.c_str());
}

TEST(Checkpoint, ErrorsNameWhatIsMissing) {
  const std::string path = temporary("errors");
  const auto error = [&](Checkpoint& c) { return error_of([&] { c.load(path); }); };
  nn::Linear small(2, 2), large(2, 3);
  int64_t step = 4;
  Checkpoint().add("model", *small).add("step", step).save(path);
  Checkpoint right, shape, more;
  right.add("step", step);
  EXPECT_EQ(error(right), "no error") << "parts may be left out";
  shape.add("model", *large);
  expect_part(error(shape), "shape of \"model.weight\": got float32[2, 2] on cpu in \"" + path +
                                "\", expected float32[3, 2]");
  more.add("model", *small).add("epoch", step);
  expect_part(error(more), "no value under the key \"epoch\"");
  ::unlink(path.c_str());
  expect_part(error(right), "cannot open the file");
  Checkpoint names;
  names.add("a", step);
  EXPECT_THROW(names.add("a", step), Error);
  EXPECT_THROW(names.add("a.b", step), Error);
  EXPECT_THROW(names.add("generators", step), Error);
}

// save() and load() of a module by holder, shared_ptr, and of an optimizer, as LibTorch programs
// write it.
TEST(Save, ModulesAndOptimizers) {
  const std::string path = temporary("save");
  manual_seed(1);
  nn::Linear a(3, 2), b(3, 2);
  ASSERT_FALSE(a->weight.equal(b->weight));
  save(a, path);
  load(b, path);
  EXPECT_TRUE(a->weight.equal(b->weight));
  EXPECT_TRUE(b->weight.requires_grad());
  auto c = std::make_shared<nn::LinearImpl>(3, 2);
  save(a.ptr(), path);
  load(c, path);
  EXPECT_TRUE(a->weight.equal(c->weight));

  const auto step = [](nn::Linear& net, optim::Optimizer& o) {
    o.zero_grad();
    net->forward(ones({4, 3})).sum().backward();
    o.step();
  };
  optim::Adam first(a->parameters(), optim::AdamOptions(0.1)),
      second(b->parameters(), optim::AdamOptions(0.5));
  step(a, first);
  save(first, path);
  load(second, path);
  save(a, temporary("model"));
  load(b, temporary("model"));
  step(a, first);
  step(b, second);
  EXPECT_TRUE(a->weight.equal(b->weight));
  ::unlink(path.c_str());
  ::unlink(temporary("model").c_str());
}

}  // namespace
}  // namespace ramet
