// "seq2seq": a Transformer (Vaswani et al. 2017) reads a string and writes another: the same one
// backwards, or the ISO form of a date.
#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <vector>

#include "autograd/ops.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/layers/sequence/transformer.h"
#include "tools/training/draw.h"
#include "tools/training/job.h"
#include "tools/training/options.h"

namespace ramet::training {

namespace {

// ---- the pairs ----------------------------------------------------------------------------------

struct Pair {
  std::string read, written;
};

// 3 to 12 letters.
Pair draw_word(Draw& draw) {
  std::string word;
  for (int64_t n = 3 + draw.below(10); n > 0; --n) word += static_cast<char>('a' + draw.below(26));
  return {word, std::string(word.rbegin(), word.rend())};
}

// A day from 1900 to 2099, in one of six ways to write it.
Pair draw_date(Draw& draw) {
  using namespace std::chrono;
  constexpr std::array kMonths = {"January",   "February", "March",    "April",
                                  "May",       "June",     "July",     "August",
                                  "September", "October",  "November", "December"};
  constexpr std::array kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                "Thursday", "Friday", "Saturday"};
  const sys_days first = year(1900) / January / 1, last = year(2099) / December / 31;
  const sys_days day = first + days(draw.below((last - first).count() + 1));
  const year_month_day date(day);
  const auto y = std::to_string(static_cast<int>(date.year()));
  const unsigned m = static_cast<unsigned>(date.month()), d = static_cast<unsigned>(date.day());
  const auto padded = [](unsigned n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  const std::string month = kMonths[m - 1], number = std::to_string(d);
  std::string read;
  switch (draw.below(6)) {
    case 0: read = number + " " + month + " " + y; break;
    case 1: read = month + " " + number + ", " + y; break;
    case 2: read = number + " " + month.substr(0, 3) + " " + y; break;
    case 3: read = padded(d) + "." + padded(m) + "." + y; break;
    case 4: read = y + "/" + std::to_string(m) + "/" + number; break;
    default: read = kDays[weekday(day).c_encoding()] + (", " + number) + " " + month + " " + y;
  }
  return {read, y + "-" + padded(m) + "-" + padded(d)};
}

// No test pair's target occurs in the training pairs.
struct Pairs {
  std::vector<Pair> train, test;
};
Pairs make_pairs(const Options& o) {
  RAMET_CHECK(o.data == "dates" || o.data == "reverse", "train", "--data: got \"", o.data,
              "\", expected dates or reverse for --model seq2seq");
  const auto count = [&](size_t all) {
    return o.limit > 0 ? std::min(static_cast<size_t>(o.limit), all) : all;
  };
  const auto make = [&](uint64_t set, uint64_t place) {
    Draw draw(static_cast<uint64_t>(o.seed), set, place);
    return o.data == "dates" ? draw_date(draw) : draw_word(draw);
  };
  Pairs pairs;
  std::set<std::string> trained;
  for (uint64_t i = 0; pairs.train.size() < count(32'000); ++i) {
    pairs.train.push_back(make(0, i));
    trained.insert(pairs.train.back().written);
  }
  for (uint64_t i = 0; pairs.test.size() < count(1000); ++i) {
    Pair pair = make(1, i);
    if (trained.count(pair.written) == 0) pairs.test.push_back(std::move(pair));
  }
  return pairs;
}

// ---- symbols ------------------------------------------------------------------------------------

// Number 0 ends a string and fills the rest of a row, number 1 begins what is written.
constexpr int64_t kEnd = 0, kBegin = 1;
struct Alphabet {
  std::string symbols;  // from number 2 on
  int64_t longest_read = 0, longest_written = 0;

  explicit Alphabet(const Pairs& pairs) {
    std::set<char> used;
    for (const auto* part : {&pairs.train, &pairs.test}) {
      for (const Pair& pair : *part) {
        used.insert(pair.read.begin(), pair.read.end());
        used.insert(pair.written.begin(), pair.written.end());
        longest_read = std::max(longest_read, static_cast<int64_t>(pair.read.size()));
        longest_written = std::max(longest_written, static_cast<int64_t>(pair.written.size()));
      }
    }
    symbols.assign(used.begin(), used.end());
  }
  int64_t count() const { return static_cast<int64_t>(symbols.size()) + 2; }
  int64_t number(char c) const { return static_cast<int64_t>(symbols.find(c)) + 2; }

  /// A row is the symbols to read, then a beginning mark and the symbols to write. Its targets are
  /// the symbols to write and an end mark.
  void encode(const std::vector<Pair>& pairs, Tensor& rows, Tensor& targets) const {
    const auto n = static_cast<int64_t>(pairs.size());
    const int64_t written = longest_written + 1;
    rows = full({n, longest_read + written}, kEnd, kByte);
    targets = full({n, written}, kEnd, kLong);
    for (int64_t i = 0; i < n; ++i) {
      const Pair& pair = pairs[static_cast<size_t>(i)];
      uint8_t* row = rows.data_ptr<uint8_t>() + i * rows.size(1);
      for (char c : pair.read) *row++ = static_cast<uint8_t>(number(c));
      row = rows.data_ptr<uint8_t>() + i * rows.size(1) + longest_read;
      *row++ = kBegin;
      int64_t* target = targets.data_ptr<int64_t>() + i * written;
      for (size_t k = 0; k < pair.written.size(); ++k) {
        const int64_t symbol = number(pair.written[k]);
        *target++ = symbol;
        row[k] = static_cast<uint8_t>(symbol);
      }
    }
  }
  /// Up to the first number that is no symbol's.
  std::string decode(const Tensor& numbers) const {
    std::string text;
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      const int64_t symbol = numbers.data_ptr<int64_t>()[i] - 2;
      if (symbol < 0) break;
      text += symbols[static_cast<size_t>(symbol)];
    }
    return text;
  }
};

// ---- the model ----------------------------------------------------------------------------------

constexpr int64_t kWidth = 64, kHeads = 4, kLayers = 2;

/// Rows, of which the written part may be shorter, become logits of what follows each of its
/// symbols, (N, symbols, written).
struct RewriterImpl : nn::Cloneable<RewriterImpl> {
  RewriterImpl(int64_t symbols_, int64_t longest_read_, int64_t longest_written_, double dropout_)
      : symbols(symbols_),
        longest_read(longest_read_),
        longest_written(longest_written_),
        dropout(dropout_) {
    RewriterImpl::reset();
  }
  void reset() override {
    symbol = register_module("symbol", nn::Embedding(symbols, kWidth));
    read_place = register_module("read_place", nn::Embedding(longest_read, kWidth));
    written_place = register_module("written_place", nn::Embedding(longest_written + 1, kWidth));
    transformer =
        register_module("transformer", nn::Transformer(nn::TransformerOptions(kWidth, kHeads)
                                                           .num_encoder_layers(kLayers)
                                                           .num_decoder_layers(kLayers)
                                                           .dim_feedforward(4 * kWidth)
                                                           .dropout(dropout)
                                                           .batch_first(true)
                                                           .norm_first(true)));
    out = register_module("out", nn::Linear(kWidth, symbols));
  }
  Tensor forward(const Tensor& rows) {
    const Tensor numbers = rows.to(kLong), read = numbers.slice(1, 0, longest_read),
                 written = numbers.slice(1, longest_read), none, padding = read.eq(kEnd);
    const auto placed = [&](const Tensor& text, nn::Embedding& places) {
      return symbol(text) +
             places(arange(text.size(1), TensorOptions(kLong).device(text.device())));
    };
    return out(transformer(placed(read, read_place), placed(written, written_place), none, none,
                           none, padding, none, padding, /*src_is_causal=*/false,
                           /*tgt_is_causal=*/true))
        .transpose(1, 2);
  }
  int64_t symbols, longest_read, longest_written;
  double dropout;
  nn::Embedding symbol{nullptr}, read_place{nullptr}, written_place{nullptr};
  nn::Transformer transformer{nullptr};
  nn::Linear out{nullptr};
};
RAMET_MODULE(Rewriter);

class Seq2seq : public Job {
 public:
  Seq2seq(const std::string& name, const Pairs& pairs) : Seq2seq(name, pairs, Alphabet(pairs)) {}

  const char* rows() const override { return "pairs"; }

  nn::Sequential make_model(double dropout) const override {
    nn::Sequential model;
    model->push_back("rewriter", Rewriter(alphabet_.count(), alphabet_.longest_read,
                                          alphabet_.longest_written, dropout));
    return model;
  }

  // Loss and accuracy are those of symbols that follow right ones. The measure that counts is
  // whether all that the model writes by itself is right.
  Tested test(nn::Sequential& model, Device device) const override {
    Tested tested = test_classes(model, device, {});
    size_t exact = 0, at = 0;
    for_test_batches(device, [&](const data::Example<>& batch) {
      for (const std::string& text : write(model, batch.data)) exact += text == test_[at++].written;
    });
    tested.more = {{"exact_match", static_cast<double>(exact) / static_cast<double>(at)}};
    return tested;
  }
  std::string score() const override { return "exact_match"; }

  std::string samples(nn::Sequential& model, Device device) const override {
    std::vector<size_t> first(std::min<size_t>(6, test_.size()));
    for (size_t i = 0; i < first.size(); ++i) first[i] = i;
    const Tensor rows = data_.batches(data_.test_rows, data_.test_targets).get_batch(first).data;
    std::string text = "of the test:\n";
    const std::vector<std::string> wrote = write(model, rows.to(device));
    for (size_t i = 0; i < wrote.size(); ++i) {
      text += test_[i].read + " -> " + wrote[i];
      text += wrote[i] == test_[i].written ? "\n" : ", expected " + test_[i].written + "\n";
    }
    return text;
  }

 private:
  Seq2seq(const std::string& name, const Pairs& pairs, const Alphabet& alphabet)
      : Job(encoded(name, pairs, alphabet)), alphabet_(alphabet), test_(pairs.test) {}

  static TrainingData encoded(const std::string& name, const Pairs& pairs,
                              const Alphabet& alphabet) {
    TrainingData d{name, {}, {}, {}, {}};
    alphabet.encode(pairs.train, d.train_rows, d.train_targets);
    alphabet.encode(pairs.test, d.test_rows, d.test_targets);
    return d;
  }

  // Symbol by symbol, each the likeliest; of `rows` it uses only the symbols to read.
  std::vector<std::string> write(nn::Sequential& model, const Tensor& rows) const {
    Tensor known = rows.slice(1, 0, alphabet_.longest_read + 1);
    for (int64_t i = 0; i <= alphabet_.longest_written; ++i)
      known = cat({known, model->forward(known).select(2, -1).argmax(1, true).to(kFloat)}, 1);
    const Tensor wrote =
        known.slice(1, alphabet_.longest_read + 1).to(Device(kCPU, 0), kLong).contiguous();
    std::vector<std::string> texts;
    for (int64_t i = 0; i < wrote.size(0); ++i) texts.push_back(alphabet_.decode(wrote[i]));
    return texts;
  }

  const Alphabet alphabet_;
  const std::vector<Pair> test_;
};

}  // namespace

std::unique_ptr<Job> make_seq2seq(const Options& options) {
  return std::make_unique<Seq2seq>(options.data, make_pairs(options));
}

}  // namespace ramet::training
