#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/byte_size.h"  // IWYU pragma: export
#include "core/base/id_vector.h"
#include "core/base/op_name.h"  // IWYU pragma: export
#include "core/derivation/analysis.h"

namespace retrograd {

/// What exports say of an op besides its call, looked up once for an analysis.
class OpFacts {
 public:
  explicit OpFacts(const Analysis& analysis);

  /// Module path: the op's own, or that of the computation op it comes from.
  std::string_view module(BoundSymbolId op) const;
  /// Whether the backward keeps this value, made in the forward.
  bool isSaved(ValueId value) const { return value && saved_[value]; }
  bool savesOutput(BoundSymbolId op) const;
  /// Bytes of what the op makes: of its outputs that share no storage with its operands.
  std::int64_t newBytes(BoundSymbolId op) const;
  /// Position in the joint; nullopt for an op of the computation.
  std::optional<std::size_t> position(BoundSymbolId op) const;
  /// The forward op a backward op comes from; none where there is none, or where it is the op itself.
  BoundSymbolId forwardOf(BoundSymbolId op) const;
  /// Backward ops (roles other than forward) that come from a forward op.
  std::vector<BoundSymbolId> backwardOf(BoundSymbolId op) const;
  /// "forward", "gradient", ...; of the computation's ops "computation".
  std::string_view role(BoundSymbolId op) const;

 private:
  const Analysis& analysis_;
  const Document& document_;
  IdVector<ValueId, bool> saved_;
  IdVector<BoundSymbolId, std::int32_t> positions_;
};

/// As deep as exports nest modules: from the 32nd on they are one, so that a hostile path nests no deeper.
inline constexpr std::size_t mostModules = 32;

/// "f32[2, 3]"; "number" for a value that is not a tensor.
std::string shortType(const Document& document, ValueId value);

}  // namespace retrograd
