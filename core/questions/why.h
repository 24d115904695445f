#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/split/saved_values.h"

namespace retrograd {

/// Who reads a saved value in the backward.
struct SavedReader {
  BoundSymbolId op;         ///< of the backward
  std::size_t operand = 0;  ///< which of its operands
  std::string argument;     ///< the schema's name for it: "mat2"
  BoundSymbolId origin;     ///< computation op whose derivative it is part of
};

/// One way to have a value again without saving it.
struct RecomputePlan {
  std::vector<BoundSymbolId> ops;  ///< forward ops that would run again, in order
  std::vector<ValueId> from;       ///< what they start from: inputs, parameters, other saved values
  std::int64_t cost = 0;           ///< opCost() of them: bytes moved, roughly
  std::int64_t freed = 0;          ///< bytes that need not be saved then: its own, and what else these ops make
  std::int64_t extraSaved = 0;     ///< bytes that would have to be saved for them, and are not now
  bool draws = false;              ///< a draw is replayed
  std::string impossible;          ///< why not; empty where it is possible
};

/// Why a value is saved for backward.
struct WhySaved {
  ValueId value;
  bool saved = false;
  BoundSymbolId maker;                 ///< forward op that makes it; none for an input
  std::vector<SavedReader> readers;    ///< first use first
  std::int64_t bytes = 0;              ///< elements times item size
  std::int64_t storageBytes = 0;       ///< that saving it keeps alive; 0 for what is there anyway (inputs, parameters)
  std::vector<ValueId> sharing;        ///< other saved values in the same storage
  std::size_t from = 0, lastRead = 0;  ///< positions: made, read last
  RecomputePlan recompute;
};

/// What the forward of a model saves for its backward; nothing where no backward was derived.
SavedValues savedValues(const Analysis& analysis);

/// `value`: of the joint. Where it is not saved, `saved` is false and the rest holds what is known.
WhySaved whySaved(const Analysis& analysis, ValueId value);

/// What stops a gradient on its way to a value.
struct GradientStop {
  enum class Kind : std::uint8_t {
    notRequested,            ///< the value itself: frozen parameter, buffer, input that is not differentiated
    notDifferentiable,       ///< the value's dtype carries no gradient
    unused,                  ///< nothing reads it
    noGradRegion,            ///< an op that ran without grad mode
    detached,                ///< detach()
    integerOp,               ///< none of the op's outputs is differentiable: comparison, argmax, conversion to integers
    outputWithoutCotangent,  ///< an output that no gradient comes in at
    noDerivative             ///< the op passes no gradient to this operand
  };
  Kind kind = Kind::unused;
  BoundSymbolId op;                 ///< computation op at which it stops; none where the value itself is the reason
  ValueId value;                    ///< last value on the way
  std::vector<BoundSymbolId> path;  ///< computation ops from the value to there
};
std::string_view name(GradientStop::Kind);

/// Why a parameter or value has no gradient: every way from it towards the outputs, and where each ends.
struct WhyNoGradient {
  ValueId value;
  ValueId gradient;                 ///< valid where it has one after all
  std::vector<GradientStop> stops;  ///< shortest path first
};

/// `value`: an input or value of the computation.
WhyNoGradient whyNoGradient(const Analysis& analysis, ValueId value);

/// "torch.ops.aten.sum.default runs without grad mode, train.py:12 in forward"; for people.
std::string describe(const Document& document, const GradientStop& stop);
/// The same without the line.
std::string reasonOf(const Document& document, const GradientStop& stop);
/// "train.py:12 in forward", the line of Python at which it stops, or of the last op before; empty where none is known.
std::string lineOf(const Document& document, const GradientStop& stop);

/// The value of this display name: of an input (or its parameter's qualified name), or of an op. nullopt where there is
/// none.
std::optional<ValueId> findValue(const Analysis& analysis, const std::string& name);
/// All names that findValue() knows, to suggest one.
std::vector<std::string> valueNames(const Analysis& analysis);

}  // namespace retrograd
