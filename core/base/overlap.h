#pragma once
#include <cstdint>
#include <vector>

#include "core/base/tensor_meta.h"

namespace retrograd {

/// Some bytes of one memory, as ranges in ascending order with gaps between them.
class ByteRanges {
 public:
  struct Range {
    std::int64_t begin = 0, end = 0;  ///< the end is not in it
    bool operator==(const Range&) const = default;
  };

  ByteRanges() = default;
  ByteRanges(std::int64_t begin, std::int64_t end) {
    if (begin < end) ranges_.push_back({begin, end});
  }
  /// The bytes of a strided tensor's elements; of another layout none. A tensor of more than a million pieces counts as
  /// all bytes from its first to its last.
  static ByteRanges of(const TensorMeta& meta);

  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }
  bool overlaps(const ByteRanges& other) const;
  void add(const ByteRanges& other);
  void remove(const ByteRanges& other);

 private:
  std::vector<Range> ranges_;
};

/// Whether two indices of such a tensor lie in the same place. Exact for up to a million elements; beyond, in doubt it
/// says true.
bool overlapsItself(const TensorMeta& meta);
/// Whether two tensors of one memory share an element. Exact for up to a million elements; beyond, in doubt it says
/// true.
bool overlap(const TensorMeta& a, const TensorMeta& b);
/// Whether each element of `inner` is one of `outer`, in the same memory and dtype. Exact for up to a million elements;
/// beyond, in doubt it says false.
bool liesWithin(const TensorMeta& inner, const TensorMeta& outer);

}  // namespace retrograd
