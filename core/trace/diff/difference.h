#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/id_vector.h"
#include "core/trace/trace.h"

namespace retrograd {

/// Where two traces part. `first` and `second` are the lines that differ, empty where one trace ends before the other.
struct Difference {
  std::string what;  ///< "op 3, its origin"
  std::string first, second;
};

/// Compares traces of two documents. Values may have different names and ids, as long as they can be paired one to one;
/// the same goes for ops and storages. What one pair of traces has paired holds for the next, so the computations come
/// first. All that a printed trace says counts; an argument that equals the schema's default is as if not given, and of
/// a source stack the frame that is shown counts.
class TraceComparison {
 public:
  TraceComparison(const Document& first, const Document& second);
  /// The first difference; nothing where the traces are the same.
  std::optional<Difference> compare(const Trace& first, const Trace& second);

 private:
  /// One direction and back, for ids of one table.
  struct Pairs {
    std::vector<std::int32_t> there, back;
    bool pair(std::int32_t a, std::int32_t b, bool& isNew);
  };
  bool sameName(ValueId a, ValueId b);
  bool sameValue(ValueId a, ValueId b);
  bool sameValues(std::span<const ValueId> a, std::span<const ValueId> b);
  bool sameDescription(const Value& a, const Value& b);
  bool sameGrad(std::span<const ValueId> a, std::span<const ValueId> b);
  bool sameOp(BoundSymbolId a, BoundSymbolId b);
  bool sameArgument(const Argument& a, std::span<const ValueId> operandsA, const Argument& b,
                    std::span<const ValueId> operandsB);
  bool sameCall(BoundSymbolId a, BoundSymbolId b);
  bool sameBody(const Subgraph& a, const Subgraph& b);
  bool sameOrigin(const Origin& a, const Origin& b);
  bool sameTerms(const Origin& a, const Origin& b);
  bool sameReference(BoundSymbolId a, BoundSymbolId b);
  bool samePlace(BoundSymbolId a, BoundSymbolId b) const;
  bool differs(const char* what) {
    if (what_.empty()) what_ = what;
    return false;
  }

  const Document& first_;
  const Document& second_;
  Pairs values_, storages_, ops_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t>
      sameTerms_;                     ///< by the beginnings of two lists, how many terms are known to be the same
  IdVector<ValueId, bool> compared_;  ///< by value of the first document
  std::string what_;                  ///< what was found to differ
};

}  // namespace retrograd
