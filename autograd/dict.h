// Dict and List: containers that copies share, as LibTorch's c10::Dict and c10::List.
#pragma once
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace detail {
/// How a Dict compares its keys.
template <class Key> struct DictLess : std::less<Key> {};
}  // namespace detail

/// In the order of insertion. A copy is another handle of the same entries; copy() copies them.
template <class Key, class Value> class Dict final {
 public:
  /// What it maps from and to:
  using key_type = Key;
  using mapped_type = Value;
  /// One entry: its key stays, its value may be set.
  class Entry {
   public:
    Entry(Key key, Value value) : key_(std::move(key)), value_(std::move(value)) {}
    /// The two, borrowed:
    const Key& key() const { return key_; }
    const Value& value() const { return value_; }
    /// The entry maps to this from now on, in every handle.
    void setValue(Value value) const { value_ = std::move(value); }

   private:
    Key key_;
    mutable Value value_;
  };
  /// Over entries, in the order of insertion.
  using iterator = typename std::vector<Entry>::const_iterator;

  Dict() : impl_(std::make_shared<Impl>()) {}
  Dict(std::initializer_list<std::pair<Key, Value>> entries) : Dict() {
    for (const auto& [key, value] : entries) insert_or_assign(key, value);
  }

  /// As std::map's, over all handles' entries:
  size_t size() const { return impl_->entries.size(); }
  bool empty() const { return size() == 0; }
  iterator begin() const { return impl_->entries.begin(); }
  iterator end() const { return impl_->entries.end(); }
  /// Where the key is, or end().
  iterator find(const Key& key) const {
    const auto at = impl_->places.find(key);
    return at == impl_->places.end() ? end() : begin() + static_cast<std::ptrdiff_t>(at->second);
  }
  /// Is there such a key? And as a number:
  bool contains(const Key& key) const { return impl_->places.count(key) != 0; }
  size_t count(const Key& key) const { return impl_->places.count(key); }
  /// An IndexError where the key is absent.
  const Value& at(const Key& key) const {
    const iterator it = find(key);
    if (it == end()) throw IndexError("[Dict] got a key that is absent, expected one of the keys");
    return it->value();
  }
  /// Leaves what is there already, and says so.
  std::pair<iterator, bool> insert(Key key, Value value) const {
    const auto made = impl_->places.emplace(key, size());
    if (made.second) impl_->entries.emplace_back(std::move(key), std::move(value));
    return {begin() + static_cast<std::ptrdiff_t>(made.first->second), made.second};
  }
  /// Where it is now, and whether it was not there before.
  std::pair<iterator, bool> insert_or_assign(Key key, Value value) const {
    const iterator there = find(key);
    if (there == end()) return insert(std::move(key), std::move(value));
    there->setValue(std::move(value));
    return {there, false};
  }
  /// The entries behind it move up.
  size_t erase(const Key& key) const {
    const auto at = impl_->places.find(key);
    if (at == impl_->places.end()) return 0;
    const size_t place = at->second;
    impl_->places.erase(at);
    impl_->entries.erase(begin() + static_cast<std::ptrdiff_t>(place));
    for (auto& later : impl_->places)
      if (later.second > place) --later.second;
    return 1;
  }
  /// Removes all entries, of all handles.
  void clear() const { impl_->entries.clear(), impl_->places.clear(); }
  /// Room for n entries.
  void reserve(size_t n) const { impl_->entries.reserve(n); }
  /// One with entries of its own.
  Dict copy() const {
    Dict other;
    *other.impl_ = *impl_;
    return other;
  }
  /// Are both handles of the same entries?
  bool is(const Dict& other) const { return impl_ == other.impl_; }
  /// The same for handles of the same entries.
  const void* id() const { return impl_.get(); }

 private:
  struct Impl {
    std::vector<Entry> entries;
    std::map<Key, size_t, detail::DictLess<Key>> places;
  };
  std::shared_ptr<Impl> impl_;
};

/// A copy is another handle of the same items; copy() copies them.
template <class T> class List final {
 public:
  /// As std::vector's:
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;

  List() : items_(std::make_shared<std::vector<T>>()) {}
  List(std::initializer_list<T> items) : items_(std::make_shared<std::vector<T>>(items)) {}
  explicit List(std::vector<T> items)
      : items_(std::make_shared<std::vector<T>>(std::move(items))) {}

  /// As std::vector's, over all handles' items:
  size_t size() const { return items_->size(); }
  bool empty() const { return items_->empty(); }
  iterator begin() const { return items_->begin(); }
  iterator end() const { return items_->end(); }
  /// An IndexError outside [0, size()).
  T& operator[](size_t i) const { return (*items_)[checked(i)]; }
  /// A copy of item i. An IndexError outside [0, size()).
  T get(size_t i) const { return (*items_)[checked(i)]; }
  /// Item i becomes the value, in every handle. An IndexError outside [0, size()).
  void set(size_t i, T value) const { (*items_)[checked(i)] = std::move(value); }
  /// One more item, in every handle.
  void push_back(T value) const { items_->push_back(std::move(value)); }
  /// One more item, made of these.
  template <class... Args> void emplace_back(Args&&... args) const {
    items_->emplace_back(std::forward<Args>(args)...);
  }
  /// Without the last; an IndexError of an empty list.
  void pop_back() const {
    checked(0);
    items_->pop_back();
  }
  /// As std::vector's:
  void reserve(size_t n) const { items_->reserve(n); }
  void resize(size_t n) const { items_->resize(n); }
  void clear() const { items_->clear(); }
  /// The items themselves.
  const std::vector<T>& vec() const { return *items_; }
  /// One with items of its own.
  List copy() const { return List(vec()); }
  /// Are both handles of the same items?
  bool is(const List& other) const { return items_ == other.items_; }

 private:
  size_t checked(size_t i) const {
    if (i < size()) return i;
    throw IndexError("[List] index: got " + std::to_string(i) + ", expected one below " +
                     std::to_string(size()));
  }
  std::shared_ptr<std::vector<T>> items_;
};

}  // namespace ramet
