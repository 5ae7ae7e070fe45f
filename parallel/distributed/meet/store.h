// A small map from names to bytes that the processes of a run share. They use it to find each
// other, and to agree on values before they have connections. Every wait has a deadline.
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

/// The type of timeouts.
using Milliseconds = std::chrono::milliseconds;
/// The time at which a wait ends.
using Deadline = std::chrono::steady_clock::time_point;
/// Stands for "for ever": a month. deadline_in() limits times to it, so that adding to a clock
/// never overflows.
inline constexpr Milliseconds kForever = std::chrono::hours(24 * 30);
/// The deadline `t` from now.
inline Deadline deadline_in(Milliseconds t) {
  return std::chrono::steady_clock::now() + std::clamp(t, Milliseconds(0), kForever);
}
/// The time left; 0 after the deadline.
RAMET_API Milliseconds time_left(Deadline deadline);

/// The timeout of waits that are given none: how late a rank may be.
inline constexpr Milliseconds kDefaultTimeout = std::chrono::minutes(5);

/// Thread-safe. Every function may throw an Error that names the store if it cannot be reached.
/// After a call of fail_all() by any rank, every function except fail_all() throws that text.
class RAMET_API Store {
 public:
  virtual ~Store();
  /// Gives the key this value.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits for the key and returns its value; nothing at the deadline.
  virtual std::optional<std::string> find(const std::string& key, Deadline deadline) = 0;
  /// Adds to a decimal number (absent: 0) and returns the sum.
  virtual int64_t add(const std::string& key, int64_t n) = 0;
  /// Sets the key if its value is `expected` (nullopt: if it is absent). Returns the previous
  /// value.
  virtual std::optional<std::string> compare_set(const std::string& key,
                                                 const std::optional<std::string>& expected,
                                                 const std::string& value) = 0;
  /// Returns false if there was no such key.
  virtual bool erase(const std::string& key) = 0;
  /// The number of keys.
  virtual size_t size() = 0;
  /// From now on every rank's use of the store fails with this text. The first text stays.
  virtual void fail_all(const std::string& why) = 0;
  /// "tcp://127.0.0.1:29500", for error texts.
  virtual std::string where() const = 0;

  /// As find(), but throws an Error "Timeout waiting for key: ..." at the deadline.
  std::string get(const std::string& key, Milliseconds timeout = kDefaultTimeout);
  /// Waits until all keys are there; the Error lists those that are not.
  void wait(const std::vector<std::string>& keys, Milliseconds timeout = kDefaultTimeout);
  /// Are all of them there now?
  bool check(const std::vector<std::string>& keys);
};

/// The map itself, for threads of one process. A TcpStore serves one.
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
  /// Wakes all waiting threads: they find nothing.
  void close();
  /// The text that fail_all() was given.
  std::optional<std::string> failure() const;

 private:
  void check_failure() const;  // the caller holds mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> map_;
  std::optional<std::string> failure_;
  bool closed_ = false;
};

/// Another store's keys that begin with a prefix: groups that share a store do not conflict.
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
  /// The number of keys of the whole store.
  size_t size() override { return store_->size(); }
  void fail_all(const std::string& why) override { store_->fail_all(why); }
  std::string where() const override { return store_->where(); }

 private:
  std::shared_ptr<Store> store_;
  std::string prefix_;
};

namespace detail {
/// The sum, for stores that keep numbers as text. An Error if `now` is not a number.
RAMET_API int64_t counted(const std::string& key, const std::optional<std::string>& now, int64_t n);
}  // namespace detail

}  // namespace distributed
}  // namespace ramet
