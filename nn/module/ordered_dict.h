// OrderedDict: a map that keeps the order of insertion. As LibTorch's.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {

/// Lookup is by binary search over positions sorted by key, so Key needs operator<.
template <class Key, class Value> class OrderedDict {
 public:
  /// One entry: its key stays, its value may be changed.
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    /// The two, borrowed:
    const Key& key() const noexcept { return pair_.first; }
    Value& value() noexcept { return pair_.second; }
    const Value& value() const noexcept { return pair_.second; }
    Value& operator*() noexcept { return pair_.second; }
    const Value& operator*() const noexcept { return pair_.second; }
    Value* operator->() noexcept { return &pair_.second; }
    const Value* operator->() const noexcept { return &pair_.second; }
    /// Both.
    const std::pair<Key, Value>& pair() const noexcept { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };

  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  /// `key_description` is what errors call a key: "Key 'x' is not defined".
  explicit OrderedDict(std::string key_description = "Key")
      : key_description_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : OrderedDict() {
    for (const Item& item : items) insert(item.key(), item.value());
  }

  /// What errors call a key.
  const std::string& key_description() const noexcept { return key_description_; }
  /// How many there are, and whether there is none:
  size_t size() const noexcept { return items_.size(); }
  bool is_empty() const noexcept { return items_.empty(); }
  /// Reserves memory for `capacity` items.
  void reserve(size_t capacity) {
    items_.reserve(capacity);
    sorted_.reserve(capacity);
  }

  /// Of an empty one an Error.
  Item& front() { return items_[first("front")]; }
  const Item& front() const { return items_[first("front")]; }
  /// The last; of an empty one an Error.
  Item& back() { return items_[first("back") + size() - 1]; }
  const Item& back() const { return items_[first("back") + size() - 1]; }
  /// Over the items, in order of insertion:
  Iterator begin() { return items_.begin(); }
  ConstIterator begin() const { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator end() const { return items_.end(); }

  Item& operator[](size_t index) { return items_[checked(index)]; }
  const Item& operator[](size_t index) const { return items_[checked(index)]; }
  /// An Error if the key is absent.
  Value& operator[](const Key& key) { return *found(key, find(key)); }
  const Value& operator[](const Key& key) const { return *found(key, find(key)); }
  /// Null if the key is absent.
  Value* find(const Key& key) noexcept {
    return const_cast<Value*>(static_cast<const OrderedDict*>(this)->find(key));
  }
  const Value* find(const Key& key) const noexcept {
    const auto at = place(key);
    return at != sorted_.end() && items_[*at].key() == key ? &items_[*at].value() : nullptr;
  }
  /// Is there such a key?
  bool contains(const Key& key) const noexcept { return find(key) != nullptr; }

  /// An Error if the key is already there.
  template <class K, class V> Value& insert(K&& key_like, V&& value_like) {
    Key key(std::forward<K>(key_like));
    const auto at = free_place(key);  // before the value is made: a refused one stays its owner's
    return put(at, std::move(key), Value(std::forward<V>(value_like)));
  }
  /// Also of a value in braces: `insert("key", {a, b})`.
  Value& insert(Key key, Value&& value) {
    const auto at = free_place(key);
    return put(at, std::move(key), std::move(value));
  }
  /// Inserts all of another one; an Error at a key that is there.
  void update(const OrderedDict& other) {
    for (const Item& item : other) insert(item.key(), item.value());
  }
  void update(OrderedDict&& other) {
    for (Item& item : other) insert(item.key(), std::move(item.value()));
  }
  /// An Error if the key is absent.
  void erase(const Key& key) {
    const auto at = place(key);
    RAMET_CHECK(at != sorted_.end() && items_[*at].key() == key, "OrderedDict", key_description_,
                " '", key, "' doesn't exist");
    const uint32_t gone = *at;
    sorted_.erase(at);
    items_.erase(items_.begin() + gone);
    for (uint32_t& i : sorted_) i -= i > gone;
  }
  /// Removes all.
  void clear() {
    items_.clear();
    sorted_.clear();
  }

  /// All of them, in order of insertion, as they lie.
  const std::vector<Item>& items() const noexcept { return items_; }
  /// Copies, in order of insertion, of the keys alone.
  std::vector<Key> keys() const {
    std::vector<Key> out;
    out.reserve(size());
    for (const Item& item : items_) out.push_back(item.key());
    return out;
  }
  /// Of the values alone.
  std::vector<Value> values() const {
    std::vector<Value> out;
    out.reserve(size());
    for (const Item& item : items_) out.push_back(item.value());
    return out;
  }
  /// Of both.
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> out;
    out.reserve(size());
    for (const Item& item : items_) out.push_back(item.pair());
    return out;
  }
  friend bool operator==(const OrderedDict& a, const OrderedDict& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](const Item& x, const Item& y) {
             return x.key() == y.key() && x.value() == y.value();
           });
  }

 private:
  typename std::vector<uint32_t>::const_iterator place(const Key& key) const {
    return std::lower_bound(sorted_.begin(), sorted_.end(), key,
                            [this](uint32_t i, const Key& k) { return items_[i].key() < k; });
  }
  typename std::vector<uint32_t>::const_iterator free_place(const Key& key) const {
    const auto at = place(key);
    RAMET_CHECK(at == sorted_.end() || !(items_[*at].key() == key), "OrderedDict", key_description_,
                " '", key, "' already defined");
    return at;
  }
  Value& put(typename std::vector<uint32_t>::const_iterator at, Key key, Value value) {
    const auto position = sorted_.insert(at, static_cast<uint32_t>(items_.size()));
    try {
      items_.emplace_back(std::move(key), std::move(value));
    } catch (...) {
      sorted_.erase(position);
      throw;
    }
    return items_.back().value();
  }
  template <class V> V* found(const Key& key, V* value) const {
    RAMET_CHECK(value, "OrderedDict", key_description_, " '", key, "' is not defined");
    return value;
  }
  size_t first(const char* what) const {
    RAMET_CHECK(!is_empty(), "OrderedDict", what, "() of an empty one");
    return 0;
  }
  size_t checked(size_t index) const {
    RAMET_CHECK(index < size(), "OrderedDict", "Index ", index, " is out of bounds for ", size(),
                " items");
    return index;
  }

  std::vector<Item> items_;
  std::vector<uint32_t> sorted_;  // positions in items_, by key
  std::string key_description_;
};

}  // namespace ramet
