// Datasets with batches that a test of loaders knows; functions that read and set a loader's
// position.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "nn/data/dataloader.h"
#include "nn/data/datasets.h"

namespace ramet {
namespace data {

using Indices = std::vector<size_t>;

/// A batch is its request.
struct Echo : datasets::BatchDataset<Echo, Indices> {
  explicit Echo(size_t size = 10) : size_(size) {}
  Indices get_batch(ArrayRef<size_t> request) override { return request.vec(); }
  std::optional<size_t> size() const override { return size_; }
  size_t size_;
};
template <class Loader> std::vector<Indices> batches_of(Loader& loader) {
  std::vector<Indices> all;
  for (auto& batch : loader) all.push_back(batch);
  return all;
}
inline Indices flat(const std::vector<Indices>& batches) {
  Indices all;
  for (const Indices& b : batches) all.insert(all.end(), b.begin(), b.end());
  return all;
}

/// Counts down; copies would each count on their own.
struct Countdown : datasets::StatefulDataset<Countdown, size_t, size_t> {
  explicit Countdown(size_t from) : from_(from), left_(std::make_shared<std::atomic<int64_t>>(0)) {}
  std::optional<size_t> get_batch(size_t) override {
    const int64_t n = (*left_)--;
    if (n <= 0) return std::nullopt;
    return static_cast<size_t>(n);
  }
  std::optional<size_t> size() const override { return from_; }
  void reset() override { *left_ = static_cast<int64_t>(from_); }
  void save(serialize::OutputArchive& a) const override { a.write("left", IValue(left_->load())); }
  void load(serialize::InputArchive& a) override {
    IValue v;
    a.read("left", v);
    *left_ = v.toInt();
  }
  size_t from_;
  std::shared_ptr<std::atomic<int64_t>> left_;
};

/// Reads the position of a loader as bytes, and sets it.
template <class Loader> std::string position_of(Loader& loader) {
  serialize::OutputArchive out;
  loader.save(out);
  std::ostringstream text;
  out.save_to(text);
  return text.str();
}
template <class Loader> void set_position(Loader& loader, const std::string& bytes) {
  serialize::InputArchive in;
  in.load_from(bytes.data(), bytes.size());
  loader.load(in);
}

}  // namespace data
}  // namespace ramet
