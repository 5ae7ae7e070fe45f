// Iterator: `for (auto& batch : *loader)`.
#pragma once
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/error.h"

namespace ramet {
namespace data {

/// An input iterator over what a function yields until it yields nothing. Copies share their
/// position. The first batch is made at the first use, not at construction. After an exception the
/// next use goes on with the batch after the failed one.
template <class Batch> class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;
  /// Makes the next batch; nothing at the end.
  using Producer = std::function<std::optional<Batch>()>;

  /// The end.
  Iterator() = default;
  explicit Iterator(Producer producer) : state_(std::make_shared<State>()) {
    state_->produce = std::move(producer);
  }

  Iterator& operator++() {
    RAMET_CHECK(state_, "DataLoader",
                "Incrementing the DataLoader's past-the-end iterator is not allowed");
    if (state_->failed) {  // it stands before a batch already, or before the end
      state_->current();
      return *this;
    }
    RAMET_CHECK(state_->current(), "DataLoader", "Attempted to increment iterator past the end");
    state_->advance();
    return *this;
  }
  Batch& operator*() {
    RAMET_CHECK(state_, "DataLoader",
                "Dereferencing the DataLoader's past-the-end iterator is not allowed");
    RAMET_CHECK(state_->current(), "DataLoader",
                "Attempted to dereference iterator that was past the end");
    return *state_->batch;
  }
  Batch* operator->() { return &**this; }

  /// Equal are copies of one iterator, and every iterator at its end.
  bool operator==(const Iterator& other) const {
    return state_ == other.state_ || (at_end() && other.at_end());
  }
  bool operator!=(const Iterator& other) const { return !(*this == other); }

 private:
  struct State {
    Producer produce;
    std::optional<Batch> batch;
    bool started = false, failed = false;
    void advance() {
      failed = true;         // until it is made
      batch = std::nullopt;  // before the next is made: its memory can be used again
      batch = produce();
      failed = false;
      started = true;
    }
    bool current() {
      if (!started || failed) advance();
      return batch.has_value();
    }
  };
  bool at_end() const { return !state_ || !state_->current(); }

  std::shared_ptr<State> state_;
};

}  // namespace data
}  // namespace ramet
