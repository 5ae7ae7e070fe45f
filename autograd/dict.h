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

/// A map in the order of insertion. A copy is another handle of the same entries; copy() copies
/// them.
template <class Key, class Value> class Dict final {
 public:
  /// The types of keys and values:
  using key_type = Key;
  using mapped_type = Value;
  /// One entry: its key is fixed, its value may be set.
  class Entry {
   public:
    Entry(Key key, Value value) : key_(std::move(key)), value_(std::move(value)) {}
    /// The key and the value, borrowed:
    const Key& key() const { return key_; }
    const Value& value() const { return value_; }
    /// Sets the entry's value, in every handle.
    void setValue(Value value) const { value_ = std::move(value); }

   private:
    Key key_;
    mutable Value value_;
  };
  /// Iterates over the entries in the order of insertion.
  using iterator = typename std::vector<Entry>::const_iterator;

  Dict() : impl_(std::make_shared<Impl>()) {}
  Dict(std::initializer_list<std::pair<Key, Value>> entries) : Dict() {
    for (const auto& [key, value] : entries) insert_or_assign(key, value);
  }

  /// As std::map's; they concern the entries that all handles share:
  size_t size() const { return impl_->entries.size(); }
  bool empty() const { return size() == 0; }
  iterator begin() const { return impl_->entries.begin(); }
  iterator end() const { return impl_->entries.end(); }
  /// The position of the key, or end().
  iterator find(const Key& key) const {
    const auto at = impl_->places.find(key);
    return at == impl_->places.end() ? end() : begin() + static_cast<std::ptrdiff_t>(at->second);
  }
  /// Is there such a key? The same as a number:
  bool contains(const Key& key) const { return impl_->places.count(key) != 0; }
  size_t count(const Key& key) const { return impl_->places.count(key); }
  /// The value of the key. An IndexError where the key is absent.
  const Value& at(const Key& key) const {
    const iterator it = find(key);
    if (it == end()) throw IndexError("[Dict] got a key that is absent, expected one of the keys");
    return it->value();
  }
  /// Inserts the pair unless the key exists. Returns the position, and whether it inserted.
  std::pair<iterator, bool> insert(Key key, Value value) const {
    const auto made = impl_->places.emplace(key, size());
    if (made.second) impl_->entries.emplace_back(std::move(key), std::move(value));
    return {begin() + static_cast<std::ptrdiff_t>(made.first->second), made.second};
  }
  /// Inserts the pair, or sets the value of the key that exists. Returns the position, and whether
  /// the key is new.
  std::pair<iterator, bool> insert_or_assign(Key key, Value value) const {
    const iterator there = find(key);
    if (there == end()) return insert(std::move(key), std::move(value));
    there->setValue(std::move(value));
    return {there, false};
  }
  /// Removes the key's entry, and moves the later entries up. Returns how many it removed.
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
  /// Removes all entries, in every handle.
  void clear() const { impl_->entries.clear(), impl_->places.clear(); }
  /// Reserves memory for n entries.
  void reserve(size_t n) const { impl_->entries.reserve(n); }
  /// A Dict with its own copy of the entries.
  Dict copy() const {
    Dict other;
    *other.impl_ = *impl_;
    return other;
  }
  /// Are both handles of the same entries?
  bool is(const Dict& other) const { return impl_ == other.impl_; }
  /// An address that is the same for all handles of the same entries.
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

  /// As std::vector's; they concern the items that all handles share:
  size_t size() const { return items_->size(); }
  bool empty() const { return items_->empty(); }
  iterator begin() const { return items_->begin(); }
  iterator end() const { return items_->end(); }
  /// Item i, of bools as std::vector's reference. An IndexError outside [0, size()).
  typename std::vector<T>::reference operator[](size_t i) const { return (*items_)[checked(i)]; }
  /// A copy of item i. An IndexError outside [0, size()).
  T get(size_t i) const { return (*items_)[checked(i)]; }
  /// Item i becomes the value, in every handle. An IndexError outside [0, size()).
  void set(size_t i, T value) const { (*items_)[checked(i)] = std::move(value); }
  /// Appends an item, in every handle.
  void push_back(T value) const { items_->push_back(std::move(value)); }
  /// Appends an item made of these arguments, in every handle.
  template <class... Args> void emplace_back(Args&&... args) const {
    items_->emplace_back(std::forward<Args>(args)...);
  }
  /// Removes the last item, in every handle. An IndexError where the list is empty.
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
  /// A List with its own copy of the items.
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
