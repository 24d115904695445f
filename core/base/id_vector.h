#pragma once
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "core/base/ids.h"

namespace retrograd {

/// The ids of a table in order, from 0 to below its size: for loops over a table that need the id of each entry.
template <class IdType>
class IdRange {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(std::size_t index) : index_(index) {}
    constexpr IdType operator*() const { return IdType(index_); }
    constexpr Iterator& operator++() {
      ++index_;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    std::size_t index_;
  };

  constexpr explicit IdRange(std::size_t size) : size_(size) {}
  constexpr Iterator begin() const { return Iterator(0); }
  constexpr Iterator end() const { return Iterator(size_); }

 private:
  std::size_t size_;
};

/// A table with one entry for each id of a kind: a vector that only ids of that kind index, so that an op's number
/// never reads a value's entry. An id that is none or lies beyond the end is a mistake of the caller, which a build
/// with assertions stops at; `contains` asks first.
template <class IdType, class T>
class IdVector {
 public:
  using value_type = T;
  using reference = typename std::vector<T>::reference;
  using const_reference = typename std::vector<T>::const_reference;
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;

  IdVector() = default;
  explicit IdVector(std::size_t size) : entries_(size) {}
  IdVector(std::size_t size, const T& entry) : entries_(size, entry) {}
  IdVector(std::initializer_list<T> entries) : entries_(entries) {}

  reference operator[](IdType id) {
    assert(contains(id));
    return entries_[id.index];
  }
  const_reference operator[](IdType id) const {
    assert(contains(id));
    return entries_[id.index];
  }
  /// Whether the id is one of this table's: not none, and below its size.
  bool contains(IdType id) const { return std::cmp_less(id.index, entries_.size()) && id.valid(); }
  /// Ids of all entries, in order.
  IdRange<IdType> ids() const { return IdRange<IdType>(entries_.size()); }
  /// The id that the next entry gets.
  IdType nextId() const { return IdType(entries_.size()); }

  /// Appends the entry and returns its id.
  IdType push_back(T entry) {
    const auto id = nextId();
    entries_.push_back(std::move(entry));
    return id;
  }

  std::size_t size() const { return entries_.size(); }
  std::size_t capacity() const { return entries_.capacity(); }
  bool empty() const { return entries_.empty(); }
  void resize(std::size_t size) { entries_.resize(size); }
  void resize(std::size_t size, const T& entry) { entries_.resize(size, entry); }
  void assign(std::size_t size, const T& entry) { entries_.assign(size, entry); }
  void reserve(std::size_t size) { entries_.reserve(size); }
  void clear() { entries_.clear(); }

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }

  bool operator==(const IdVector&) const = default;

 private:
  std::vector<T> entries_;
};

}  // namespace retrograd
