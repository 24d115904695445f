#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/enum_array.h"
#include "core/base/id_vector.h"
#include "core/trace/trace.h"

namespace retrograd {

enum class Side : std::uint8_t { left, right };
inline constexpr std::array bothSides{Side::left, Side::right};

/// One side of a comparison.
struct DiffSide {
  const Document* document = nullptr;
  const Trace* trace = nullptr;        ///< what is compared
  const Trace* computation = nullptr;  ///< that the trace comes from; null where it is not known
  const Trace* joint = nullptr;  ///< that forward and backward were split from, so that what one hands to the other is
                                 ///< known; may be null
  /// Of a run that was recorded, by op: a number for the part of the run, the same for the same part of another run.
  /// Null where ops have none: nothing ran.
  std::shared_ptr<const std::vector<std::int32_t>> parts = {};
  bool isPart = false;  ///< a graph that may be cut out of the other: its inputs are what ops there make, by name
};

/// Numbers under which two documents know the same things: names of ops, modules, types, literals. Equal numbers mean
/// equal things, whatever their ids are. Each distinct thing is looked at once a document.
class Signatures {
 public:
  Signatures(const DiffSide& left, const DiffSide& right);

  std::int32_t symbol(Side side, BoundSymbolId op);
  std::int32_t module(Side side, BoundSymbolId op);
  /// The call without its operands: literals, places of the operands, groups of returns. What equals the schema's
  /// default is as if not given.
  std::int32_t call(Side side, BoundSymbolId op);
  /// The text of the line that called it, wherever it stands in its file. The same for all ops without one.
  std::int32_t code(Side side, BoundSymbolId op);
  /// The part of the run that it ran in (DiffSide::parts).
  std::int32_t part(Side side, BoundSymbolId op) const;
  /// Where its operands come from: which op makes each, and as which output; what an input is.
  std::int32_t flow(Side side, BoundSymbolId op);
  /// Of a tensor its dtype, device and shape, strides included; of anything else its kind.
  std::int32_t type(Side side, ValueId value);
  /// Of all that the op makes.
  std::int32_t results(Side side, BoundSymbolId op);
  /// One number for several.
  std::int32_t together(const std::vector<std::int32_t>& numbers);

  const Document& document(Side side) const { return *known_[side].document; }

 private:
  struct Known {
    const Document* document;
    std::shared_ptr<const std::vector<std::int32_t>> parts;
    // Numbers, -1: not looked at.
    IdVector<SymbolId, std::int32_t> symbols;
    std::vector<std::int32_t> modules;  // by StringId, from 1; at 0 that of none
    IdVector<MetaId, std::int32_t> types;
    std::map<std::pair<SymbolId, PatternId>, std::int32_t> calls;
    std::unordered_map<std::string_view, std::int32_t> codes;
  };
  Known& known(Side side) { return known_[side]; }
  std::int32_t number(const std::string& text) {
    return texts_.try_emplace(text, static_cast<std::int32_t>(texts_.size())).first->second;
  }

  EnumArray<Side, Known, 2> known_;
  std::unordered_map<std::string, std::int32_t> texts_;
  std::map<std::vector<std::int32_t>, std::int32_t> tuples_;
};

}  // namespace retrograd
