// "gpt2": goes on with a text, or with ids that a tokenizer made of one.
#include <sys/stat.h>

#include <algorithm>

#include "autograd/ops.h"
#include "tools/training/gpt2.h"
#include "tools/training/id_files.h"
#include "tools/training/job.h"
#include "tools/training/options.h"

namespace ramet::training {
namespace {

bool is_folder(const std::string& path) {
  struct stat there {};
  return ::stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode);
}

/// Pieces of `length` ids, one after the other, each with the ids that follow its own. Of a folder
/// training has train.bin and tests have val.bin. Of a file training has the first nine tenths.
/// Both lie in the memory of the files' ids. The first `limit` of both (0: all).
TrainingData pieces(const std::string& path, const Gpt2Size& size, int64_t length, int64_t limit) {
  TrainingData d{path, {}, {}, {}, {}};
  const auto cut = [&](const Tensor& ids, const char* use, Tensor& rows, Tensor& targets) {
    RAMET_CHECK(ids.numel() > length, "train", "--data \"", path, "\": got ", ids.numel(),
                " ids to ", use, ", expected at least ", length + 1, " (--length ", length,
                " and one that follows)");
    int64_t n = (ids.numel() - 1) / length;
    if (limit > 0) n = std::min(n, limit);
    rows = ids.slice(0, 0, n * length).view({n, length});
    targets = ids.slice(0, 1, n * length + 1).view({n, length});
  };
  Tensor learned, rest;
  if (is_folder(path)) {
    learned = load_ids(path + "/train.bin", size.symbols);
    rest = load_ids(path + "/val.bin", size.symbols);
  } else {
    const Tensor ids = load_ids(path, size.symbols);
    const int64_t n = ids.numel() * 9 / 10;
    learned = ids.slice(0, 0, n), rest = ids.slice(0, n);
  }
  cut(learned, "train with", d.train_rows, d.train_targets);
  cut(rest, "test with", d.test_rows, d.test_targets);
  return d;
}

class Gpt2Job : public Job {
 public:
  Gpt2Job(const Options& o, const Gpt2Size& size, int64_t length)
      : Job(pieces(o.data, size, length, o.limit)),
        size_(size),
        weights_(o.resume ? "" : o.weights),  // a checkpoint has its own
        text_(!o.data.ends_with(".bin") && !is_folder(o.data)) {}

  const char* rows() const override { return "pieces"; }

  nn::Sequential make_model(double dropout) const override {
    Gpt2 gpt2(size_, dropout);
    if (!weights_.empty()) load_gpt2(*gpt2, weights_);
    nn::Sequential model;
    model->push_back("transformer", gpt2);
    return model;
  }
  // Each replica computes the losses of its own rows, so that no device holds all logits.
  Pass pass(int /*number*/, Replicas& model, const Processes& /*processes*/,
            const data::Example<>& batch) const override {
    return {model.forward(batch.data, batch.target).sum() /
            static_cast<double>(batch.target.numel())};
  }
  Tensor output(nn::Sequential& model, const Tensor& rows) const override {
    return gpt2(model).logits(rows).transpose(1, 2);
  }
  int64_t test_row_numbers() const override { return data_.test_rows.size(1) * size_.symbols; }
  void save_model(const nn::Sequential& model, const std::string& folder) const override {
    save_gpt2(gpt2(model), folder);
  }

  // The model's continuation of the test's first ids: 32 more, drawn.
  std::string samples(nn::Sequential& model, Device device) const override {
    const int64_t begin = std::min<int64_t>(16, data_.test_rows.size(1));
    Tensor said = data_.test_rows.slice(0, 0, 1).slice(1, 0, begin).to(kLong);
    const int64_t places = data_.train_rows.size(1);  // training has seen no further ones
    for (int64_t i = 0; i < 32; ++i) {
      const int64_t from = std::max<int64_t>(0, said.size(1) - places);
      const Tensor logits = gpt2(model).logits(said.slice(1, from).to(device)).select(1, -1);
      const Tensor drawn = multinomial((logits.to(kFloat) / 0.8).softmax(1), 1);
      said = cat({said, drawn.to(Device(kCPU, 0))}, 1);
    }
    std::string text = "it goes on:\n";
    for (int64_t i = 0; i < said.numel(); ++i) {
      const int64_t id = said.data_ptr<int64_t>()[i];
      if (!text_) text += (i > 0 ? " " : "") + std::to_string(id);
      else text += id < 256 ? static_cast<char>(id) : '?';
    }
    return text + "\n";
  }

 private:
  static Gpt2Impl& gpt2(const nn::Sequential& model) { return *model->ptr<Gpt2Impl>(0); }

  const Gpt2Size size_;
  const std::string weights_;
  const bool text_;  // ids are characters
};

}  // namespace

std::unique_ptr<Job> make_gpt2(const Options& o) {
  const Gpt2Size& size = gpt2_size(o.size);
  RAMET_CHECK(o.length <= size.context, "train", "--length: got ", o.length, ", expected at most ",
              size.context, " for --size ", size.name);
  return std::make_unique<Gpt2Job>(o, size, o.length > 0 ? o.length : size.context);
}

}  // namespace ramet::training
