#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/id_vector.h"
#include "core/derivation/analysis.h"
#include "core/trace/diff/op_pairs.h"

namespace retrograd {

/// "mul" of "aten.mul.Tensor".
std::string shortNameOf(const Document& document, BoundSymbolId op);
/// Whether the op gives the elements that it reads, as they are: it is not to blame where another op is there.
bool isPlain(const Document& document, BoundSymbolId op);
/// Whether the op gives the elements that it reads in another dtype.
bool isCast(const Document& document, BoundSymbolId op);
/// What the op writes without a new value: what the operands hold changes, and their names do not say so.
std::vector<ValueId> silentWrites(const Document& document, BoundSymbolId op);
/// Bits of a number's fraction: fewer is coarser.
int digitsOf(DType dtype);
DType coarser(DType a, DType b);

/// What two runs have in common, before either runs: which op of the second does the work of which op of the first, and
/// which must therefore run once more on what the first has. Ops are by their position in the joints, values by id.
struct RunPairing {
  /// What is left at the end: a loss, a buffer, a gradient. A run without it has no value here.
  struct End {
    ValueId a, b;
    std::string name;         ///< for people: "gradient of h.weight"
    std::string parameter{};  ///< whose gradient it is; empty: of none
  };

  /// `all`: every op that has a partner runs once more. The analyses and the pairs must outlive it.
  RunPairing(const Analysis& a, const Analysis& b, OpPairs& pairs, bool all);

  /// The first's value that stands for the second's; none where an op that has no partner makes it.
  ValueId forced(ValueId ofB) const;
  /// Whether the first's value stands for the second's, be it that the first made it again.
  bool stands(ValueId ofA, ValueId ofB) const;
  bool isAloneA(BoundSymbolId opA) const;  ///< no op of the second does its work
  bool isAloneB(BoundSymbolId opB) const;
  bool hasDynamicOperand(BoundSymbolId opB) const;
  /// Whether the calls differ by sizes alone, as batches of another size make them.
  bool isExplainedBySizes(BoundSymbolId opA, BoundSymbolId opB) const;
  /// Whether the runs compute in different precisions altogether.
  bool isCoarse() const { return baseA != baseB; }

  const Analysis& a;
  const Analysis& b;
  const Document& documentA;
  const Document& documentB;
  OpPairs& pairs;
  DType baseA, baseB;         ///< what each run computes in
  bool batchDiffers = false;  ///< inputs have other sizes
  std::size_t mustRun = 0;    ///< ops that differ or that one run has alone
  IdVector<BoundSymbolId, std::int64_t> placeA, placeB;
  IdVector<ValueId, BoundSymbolId> makerA, makerB;  ///< of the joint: the op that made a value there
  std::vector<std::int64_t> partners, answers;      ///< by position of b; of a; -1: none
  std::vector<char> runs;                           ///< by position of b
  /// By position: runs again in the backward what a checkpoint ran before, and gives the same.
  std::vector<char> isRepeatA, isRepeatB;
  /// Ops that match but hand on what they read, which is not the same: the next that computes something tells.
  std::unordered_map<BoundSymbolId, BoundSymbolId> carriersA, carriersB;
  std::vector<std::size_t> needs;  ///< by position of b: how many ops of a have to be over before it is judged
  std::vector<End> ends;
  std::unordered_set<ValueId> dynamicB;  ///< written by an op that one run alone has, without a new value
  std::unordered_set<ValueId> wanted;    ///< values of a that are asked for later

 private:
  void findSizes();
  void findRepeats();
  void findPairs();
  void findWhatRuns(bool all);
  void findEnds();
  bool isStrict(BoundSymbolId opA, BoundSymbolId opB) const;
  bool isAnchor(BoundSymbolId opA, BoundSymbolId opB) const;
  bool differs(std::size_t i, std::size_t j);
  /// What runs again gives what it gave before: the value as its first maker made it.
  ValueId firstMade(const Analysis& of, const IdVector<ValueId, BoundSymbolId>& makers,
                    const IdVector<BoundSymbolId, std::int64_t>& place, const std::vector<char>& isRepeat,
                    ValueId value) const;
  bool isSameButForSizes(const Argument& x, const Argument& y, const std::set<std::int64_t>& dimsA,
                         const std::set<std::int64_t>& dimsB) const;

  std::set<std::pair<std::int64_t, std::int64_t>> ratios_;  ///< elements of inputs that have other sizes
};

}  // namespace retrograd
