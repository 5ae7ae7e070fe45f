// A small map from names to bytes that the processes of a run share: how they find each other, and
// what they agree on before they can talk. Every wait has a deadline.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace distributed {

/// What timeouts are given in.
using Milliseconds = std::chrono::milliseconds;
/// Until when something waits.
using Deadline = std::chrono::steady_clock::time_point;
/// A month stands for ever, and before now for now: nothing that is added to a clock overflows.
inline constexpr Milliseconds kForever = std::chrono::hours(24 * 30);
/// So long from now.
inline Deadline deadline_in(Milliseconds t) {
  return std::chrono::steady_clock::now() + std::clamp(t, Milliseconds(0), kForever);
}
/// Time left, 0 after the deadline.
RAMET_API Milliseconds time_left(Deadline deadline);

/// What waits take that name no time of their own: how long a rank may be late.
inline constexpr Milliseconds kDefaultTimeout = std::chrono::minutes(5);

/// Thread safety: all of it. Every function may throw an Error that names the store where it cannot
/// be reached; where somebody has called fail_all(), every function but fail_all() throws its text.
class RAMET_API Store {
 public:
  virtual ~Store();
  /// The key has this value from now on.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// The value, as soon as there is one; nothing at the deadline.
  virtual std::optional<std::string> find(const std::string& key, Deadline deadline) = 0;
  /// Adds to a decimal number (absent: 0) and returns the sum.
  virtual int64_t add(const std::string& key, int64_t n) = 0;
  /// Sets the key where its value is `expected` (nullopt: where it is absent). Returns what it was.
  virtual std::optional<std::string> compare_set(const std::string& key,
                                                 const std::optional<std::string>& expected,
                                                 const std::string& value) = 0;
  /// False where there was no such key.
  virtual bool erase(const std::string& key) = 0;
  /// How many keys have a value.
  virtual size_t size() = 0;
  /// From now on every rank's use of the store ends with this text. The first text stays.
  virtual void fail_all(const std::string& why) = 0;
  /// "tcp://127.0.0.1:29500", for error texts.
  virtual std::string where() const = 0;

  /// As find(), with an Error "Timeout waiting for key: ..." at the end.
  std::string get(const std::string& key, Milliseconds timeout = kDefaultTimeout);
  /// Until all of them are there; the Error lists those that are not.
  void wait(const std::vector<std::string>& keys, Milliseconds timeout = kDefaultTimeout);
  /// Are all of them there now?
  bool check(const std::vector<std::string>& keys);
};

/// The map itself, for threads of one process; what a TcpStore serves.
class RAMET_API MemoryStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> find(const std::string& key, Deadline deadline) override;
  int64_t add(const std::string& key, int64_t n) override;
  std::optional<std::string> compare_set(const std::string& key,
                                         const std::optional<std::string>& expected,
                                         const std::string& value) override;
  bool erase(const std::string& key) override;
  size_t size() override;
  void fail_all(const std::string& why) override;
  std::string where() const override { return "inproc://"; }
  /// Wakes those that wait: they find nothing.
  void close();
  /// What fail_all() was given.
  std::optional<std::string> failure() const;

 private:
  void check_failure() const;  // under mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> map_;
  std::optional<std::string> failure_;
  bool closed_ = false;
};

/// Another store's keys that begin with a prefix: groups that share a store do not meet.
class RAMET_API PrefixStore final : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix) + "/") {}
  void set(const std::string& key, const std::string& value) override {
    store_->set(prefix_ + key, value);
  }
  std::optional<std::string> find(const std::string& key, Deadline deadline) override {
    return store_->find(prefix_ + key, deadline);
  }
  int64_t add(const std::string& key, int64_t n) override { return store_->add(prefix_ + key, n); }
  std::optional<std::string> compare_set(const std::string& key,
                                         const std::optional<std::string>& expected,
                                         const std::string& value) override {
    return store_->compare_set(prefix_ + key, expected, value);
  }
  bool erase(const std::string& key) override { return store_->erase(prefix_ + key); }
  /// Of the whole store.
  size_t size() override { return store_->size(); }
  void fail_all(const std::string& why) override { store_->fail_all(why); }
  std::string where() const override { return store_->where(); }

 private:
  std::shared_ptr<Store> store_;
  std::string prefix_;
};

namespace detail {
/// The sum as text, for stores that keep numbers as values. An Error where `now` is no number.
RAMET_API int64_t counted(const std::string& key, const std::optional<std::string>& now, int64_t n);
}  // namespace detail

}  // namespace distributed
}  // namespace ramet
