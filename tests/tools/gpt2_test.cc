// GPT-2: transformers' numbers, its files, and files of ids.
#include "tools/training/gpt2.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/serialize/safetensors.h"
#include "nn/utils/convert_parameters.h"
#include "runtime/devices/generator.h"
#include "tests/error_text.h"
#include "tests/tools/train_support.h"
#include "tests/values.h"
#include "tools/training/id_files.h"

namespace ramet::training {
namespace {

// The formula of make_gpt2.py.
uint32_t hashed(uint32_t i, uint32_t seed) {
  uint32_t h = i * 2654435761u + seed * 40503u + 1;
  h = (h ^ h >> 15) * 2246822519u;
  h = (h ^ h >> 13) * 3266489917u;
  return h ^ h >> 16;
}
Tensor drawn_weight(IntArrayRef sizes, uint32_t seed, double add = 0) {
  Tensor t(TensorBase::empty(sizes, kFloat, Device(kCPU, 0)));
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double u = (hashed(static_cast<uint32_t>(i), seed) >> 12) * 0x1p-20 - 0.5;
    t.data_ptr<float>()[i] =
        static_cast<float>(static_cast<double>(static_cast<float>(u * 0.2)) + add);
  }
  return t;
}
Tensor drawn_ids(int64_t rows, int64_t length) {
  Tensor ids(TensorBase::empty({rows, length}, kLong, Device(kCPU, 0)));
  for (int64_t i = 0; i < ids.numel(); ++i)
    ids.data_ptr<int64_t>()[i] = hashed(static_cast<uint32_t>(i), 1000) % 512;
  return ids;
}

struct Golden {
  std::vector<std::pair<std::string, Tensor>> weights;  // as they are stored
  double loss = 0;
  std::vector<double> logits;
  struct Gradient {
    std::string name;
    double norm, along;
  };
  std::vector<Gradient> gradients;
};
Golden golden() {
  Golden g;
  std::ifstream file("tests/tools/goldens/gpt2.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string kind, name;
    in >> kind;
    if (kind == "tensor") {
      in >> name;
      std::vector<int64_t> sizes;
      for (int64_t n; in >> n;) sizes.push_back(n);
      const bool norm = name.find("ln_") != std::string::npos && name.ends_with("weight");
      g.weights.emplace_back(
          name, drawn_weight(sizes, static_cast<uint32_t>(g.weights.size()), norm ? 1 : 0));
    } else if (kind == "loss") {
      in >> g.loss;
    } else if (kind == "logits") {
      for (double v; in >> v;) g.logits.push_back(v);
    } else {
      Golden::Gradient gradient;
      in >> gradient.name >> gradient.norm >> gradient.along;
      g.gradients.push_back(gradient);
    }
  }
  EXPECT_EQ(g.weights.size(), 28u);
  EXPECT_EQ(g.gradients.size(), 28u);
  EXPECT_EQ(g.logits.size(), 310u);
  return g;
}

class Gpt2Files : public ::testing::Test {
 protected:
  Gpt2Files() {
    const char* base = std::getenv("TEST_TMPDIR");
    folder_ = std::string(base ? base : "/tmp") + "/gpt2_" + std::to_string(::getpid());
    EXPECT_EQ(std::system(("mkdir -p '" + folder_ + "'").c_str()), 0);
  }
  ~Gpt2Files() override { EXPECT_EQ(std::system(("rm -rf '" + folder_ + "'").c_str()), 0); }

  std::string stored(const serialize::Safetensors& content) const {
    serialize::save_safetensors(folder_ + "/weights.safetensors", content);
    return folder_ + "/weights.safetensors";
  }
  std::string written(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
    return folder_ + "/" + name;
  }
  static Gpt2 tiny() { return Gpt2(gpt2_size("tiny"), 0.0); }

  std::string folder_;
};

// Both forms of names, a tied head and the masks of old files.
TEST_F(Gpt2Files, LogitsAndGradientsAreTransformers) {
  const Golden g = golden();
  for (const bool prefixed : {true, false}) {
    serialize::Safetensors content;
    for (const auto& [name, weight] : g.weights)
      content.tensors.emplace_back((prefixed ? "transformer." : "") + name, weight);
    if (!prefixed) {
      content.tensors.emplace_back("lm_head.weight", g.weights.back().second);
      content.tensors.emplace_back("h.1.attn.bias", ones({1, 1, 64, 64}, kByte));
      content.tensors.emplace_back("h.0.attn.masked_bias", full({}, -1e4, kFloat));
    }
    Gpt2 model = tiny();
    load_gpt2(*model, stored(content));
    model->eval();
    const Tensor text = drawn_ids(2, 17), ids = text.slice(1, 0, 16), targets = text.slice(1, 1);
    for (const ScalarType dtype : {kFloat, kDouble}) {
      model->to(dtype);
      const double tolerance = dtype == kFloat ? 1e-5 : 1e-9;
      model->zero_grad();
      const std::vector<double> logits = values(model->logits(ids));
      for (size_t i = 0; i < g.logits.size(); ++i)
        EXPECT_NEAR(logits[53 * i], g.logits[i], tolerance) << i;
      const Tensor loss = model->forward(ids, targets).sum() / 32;
      EXPECT_NEAR(loss.item<double>(), g.loss, tolerance);
      loss.backward();
      uint32_t seed = 500;
      for (const Golden::Gradient& gradient : g.gradients) {
        Tensor own = model->named_parameters()[gradient.name].grad();
        const auto& sizes = g.weights[seed - 500].second.sizes();
        if (own.dim() == 2 && gradient.name[0] == 'h') own = own.t();
        EXPECT_NEAR(own.norm().item<double>(), gradient.norm, tolerance) << gradient.name;
        const Tensor along = drawn_weight(sizes, seed++).to(dtype);
        EXPECT_NEAR((own * along).sum().item<double>(), gradient.along, tolerance) << gradient.name;
      }
    }
  }
}

TEST_F(Gpt2Files, AreWrittenAsTransformersDoes) {
  const Golden g = golden();
  serialize::Safetensors content;
  for (const auto& [name, weight] : g.weights) content.tensors.emplace_back(name, weight);
  Gpt2 model = tiny();
  load_gpt2(*model, stored(content));
  save_gpt2(*model, folder_);
  const serialize::Safetensors again = serialize::load_safetensors(folder_ + "/model.safetensors");
  EXPECT_EQ(again.metadata.at("format"), "pt");
  EXPECT_EQ(again.tensors.size(), g.weights.size());
  for (const auto& [name, weight] : g.weights) {
    const Tensor* found = again.find("transformer." + name);
    ASSERT_TRUE(found) << name;
    EXPECT_TRUE(equal(*found, weight)) << name;
  }
  const auto config = nlohmann::json::parse(read_file(folder_ + "/config.json"));
  EXPECT_EQ(config.at("n_layer"), 2);
  EXPECT_EQ(config.at("n_embd"), 64);
  EXPECT_EQ(config.at("n_head"), 2);
  EXPECT_EQ(config.at("vocab_size"), 512);
  EXPECT_EQ(config.at("n_positions"), 64);
  EXPECT_EQ(config.at("model_type"), "gpt2");
  // And read back, by another model.
  Gpt2 other = tiny();
  load_gpt2(*other, folder_ + "/model.safetensors");
  for (const auto& item : model->named_parameters())
    EXPECT_TRUE(equal(item.value(), other->named_parameters()[item.key()])) << item.key();
}

TEST_F(Gpt2Files, SixteenBitsAreConverted) {
  const Golden g = golden();
  serialize::Safetensors content;
  for (const auto& [name, weight] : g.weights)
    content.tensors.emplace_back(name, weight.to(name[0] == 'h' ? kBFloat16 : kHalf));
  Gpt2 model = tiny();
  load_gpt2(*model, stored(content));
  const auto own = model->named_parameters();
  EXPECT_TRUE(equal(own["h.0.mlp.c_fc.weight"].t().contiguous(),
                    content.find("h.0.mlp.c_fc.weight")->to(kFloat)));
  EXPECT_TRUE(equal(own["wte.weight"], content.find("wte.weight")->to(kFloat)));
  EXPECT_EQ(own["wte.weight"].scalar_type(), kFloat);
}

TEST_F(Gpt2Files, WeightsThatDoNotFitChangeNothing) {
  const Golden g = golden();
  Gpt2 model = tiny();
  const Tensor before = nn::utils::parameters_to_vector(model->parameters()).detach().clone();
  const auto refused = [&](const std::function<void(serialize::Safetensors&)>& change,
                           const std::string& text) {
    serialize::Safetensors content;
    for (const auto& [name, weight] : g.weights) content.tensors.emplace_back(name, weight);
    change(content);
    const std::string path = stored(content);
    EXPECT_EQ(error_of([&] { load_gpt2(*model, path); }),
              "[train] --weights \"" + path + "\": tensor " + text);
    EXPECT_TRUE(equal(nn::utils::parameters_to_vector(model->parameters()), before)) << text;
  };
  const auto named = [](serialize::Safetensors & content, const std::string& name) -> auto& {
    for (auto& entry : content.tensors)
      if (entry.first == name) return entry;
    fail("test", "no ", name);
  };
  refused([&](auto& c) { c.tensors.pop_back(); },
          "\"wte.weight\": got none, expected one of the shape [512, 64]");
  refused([&](auto& c) { c.tensors.erase(c.tensors.begin() + 1); },
          "\"h.0.attn.c_attn.weight\": got none, expected one of the shape [64, 192]");
  refused(
      [&](auto& c) {
        Tensor& t = named(c, "h.1.mlp.c_fc.weight").second;
        t = t.t().contiguous();  // as a Linear's
      },
      "\"h.1.mlp.c_fc.weight\": got the shape [256, 64], expected [64, 256] as of --size tiny");
  refused(
      [&](auto& c) {
        named(c, "wte.weight").second = ones({50257, 64});
      },
      "\"wte.weight\": got the shape [50257, 64], expected [512, 64] as of --size tiny");
  refused([&](auto& c) { c.tensors.emplace_back("transformer.h.2.ln_1.bias", ones({64})); },
          "\"transformer.h.2.ln_1.bias\": got it, expected a name of a GPT-2 of --size tiny");
  refused([&](auto& c) { named(c, "ln_f.bias").second = ones({64}, kInt); },
          "\"ln_f.bias\": got int32, expected a floating dtype");
  refused([&](auto& c) { c.tensors.emplace_back("transformer.ln_f.bias", ones({64})); },
          "\"transformer.ln_f.bias\": got it twice, with and without \"transformer.\", expected it "
          "once");
  refused(
      [&](auto& c) {
        c.tensors.emplace_back("lm_head.weight", ones({512, 64}));
      },
      "\"lm_head.weight\": got other values than those of \"wte.weight\", expected the same: "
      "GPT-2's head shares them");
  refused(
      [&](auto& c) {
        c.tensors.emplace_back("lm_head.weight", ones({512, 32}));
      },
      "\"lm_head.weight\": got the shape [512, 32], expected [512, 64] as of --size tiny");

  serialize::Safetensors whole;
  for (const auto& [name, weight] : g.weights) whole.tensors.emplace_back(name, weight);
  const std::string bytes = read_file(stored(whole));
  std::string damaged = bytes;
  damaged[bytes.size() - 3] ^= 1;
  for (const std::string& bad : {bytes.substr(0, bytes.size() - 5), std::string("text"), damaged})
    EXPECT_ERROR_TEXT(load_gpt2(*model, written("bad.safetensors", bad)), "bad.safetensors\"");
  EXPECT_ERROR_TEXT(load_gpt2(*model, folder_ + "/none"), "/none\"");
  EXPECT_TRUE(equal(nn::utils::parameters_to_vector(model->parameters()), before));
}

TEST(Gpt2Start, WeightsAreDrawnAsGpt2s) {
  manual_seed(3);
  Gpt2 model(gpt2_size("tiny"), 0.0);
  int64_t parameters = 0;
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    const double mean = item.value().mean().item<double>();
    parameters += item.value().numel();
    if (item.value().dim() == 1) {
      const double all = name.find("ln_") != std::string::npos && name.ends_with("weight") ? 1 : 0;
      EXPECT_TRUE(item.value().eq(all).all().item<bool>()) << name;
      continue;
    }
    const auto n = static_cast<double>(item.value().numel());
    const double expected = name.ends_with("c_proj.weight") ? 0.01 : 0.02,
                 stddev = item.value().std().item<double>();
    EXPECT_NEAR(stddev, expected, 4 * expected / std::sqrt(2 * n)) << name;
    EXPECT_NEAR(mean, 0, 4 * expected / std::sqrt(n)) << name;
  }
  EXPECT_EQ(parameters, 512 * 64 + 64 * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64);
  EXPECT_ERROR_TEXT(gpt2_size("125M"), "--size: got \"125M\", expected tiny, 124M, small, ");
}

// A place sees nothing that follows it, and dropout is off in evaluation.
TEST(Gpt2Start, SeesOnlyWhatIsBefore) {
  Gpt2 model(gpt2_size("tiny"), 0.5);
  const Tensor ids = drawn_ids(1, 64);
  Tensor other = ids.clone();
  other[0][40] = (ids[0][40].item<int64_t>() + 1) % 512;
  EXPECT_FALSE(equal(model->logits(ids), model->logits(ids)));
  model->eval();
  const Tensor a = model->logits(ids), b = model->logits(other);
  EXPECT_TRUE(equal(a.slice(1, 0, 40), b.slice(1, 0, 40)));
  EXPECT_FALSE(equal(a.select(1, 40), b.select(1, 40)));
}

// ---- files of ids

std::string as_bytes(const std::vector<uint16_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), 2 * ids.size()};
}
std::string llm_header(int32_t magic, int32_t version, int32_t count) {
  std::vector<int32_t> header(256);
  header[0] = magic, header[1] = version, header[2] = count;
  return {reinterpret_cast<const char*>(header.data()), 1024};
}

TEST_F(Gpt2Files, OfIds) {
  std::vector<uint16_t> ids;
  for (int i = 0; i < 700; ++i) ids.push_back(static_cast<uint16_t>(i * 97 % 50257));
  const auto read = [](const std::string& path) {
    const Tensor t = load_ids(path, 50257);
    EXPECT_EQ(t.scalar_type(), kUInt16);
    return values(t.to(kLong));
  };
  const std::vector<double> expected(ids.begin(), ids.end());
  EXPECT_EQ(read(written("plain.bin", as_bytes(ids))), expected);
  EXPECT_EQ(read(written("llm.bin", llm_header(20240520, 1, 700) + as_bytes(ids))), expected);
  EXPECT_EQ(read(written("text", "a\xff\n")), (std::vector<double>{97, 255, 10}));
  EXPECT_EQ(read(written("empty.bin", "")).size(), 0u);
  EXPECT_EQ(read(written("empty", "")).size(), 0u);
  EXPECT_EQ(read(written("none.bin", llm_header(20240520, 1, 0))).size(), 0u);

  const auto refused = [&](const std::string& name, const std::string& bytes, int64_t symbols,
                           const std::string& text) {
    const std::string path = written(name, bytes);
    EXPECT_EQ(error_of([&] { load_ids(path, symbols); }),
              "[train] --data \"" + path + "\": " + text);
  };
  refused("odd.bin", "abc", 512, "got 3 bytes, expected an even number of them: ids of 16 bits");
  refused("large.bin", as_bytes({1, 511, 512}), 512,
          "got the id 512 at place 2, expected less than 512");
  refused("version.bin", llm_header(20240520, 2, 0), 512,
          "got version 2 of llm.c's files, expected 1: ids of 16 bits");
  refused("count.bin", llm_header(20240520, 1, 3) + as_bytes({1, 2}), 512,
          "got 2 ids, expected 3 as its header says");
  // Without the magic number these are ids.
  refused("other.bin", llm_header(20240521, 1, 0), 50257,
          "got the id 55433 at place 0, expected less than 50257");
  for (const std::string& path : {folder_ + "/nothing.bin", folder_ + "/nothing", folder_})
    EXPECT_EQ(
        error_of([&] { load_ids(path, 512); }),
        "[train] --data \"" + path + "\": got a file that cannot be read, expected a text or ids");
}

}  // namespace
}  // namespace ramet::training
