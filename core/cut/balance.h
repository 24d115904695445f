#pragma once
#include <cstdint>
#include <vector>

#include "core/cut/cuts.h"

namespace retrograd {

/// By position in the computation's ops, whether a cut before that op would part a write in place, or the new content
/// of a buffer, from what shares its memory (pipeline_split.h refuses most of these). Nothing is cut at
/// positions 0 and ops.size(): they count as uncuttable.
std::vector<char> uncuttable(const Document& document, const Computation& computation);

/// Bytes of the activations that are made before a position and used at or behind it, by position.
std::vector<std::int64_t> bytesAcross(const Document& document, const Computation& computation);

/// Cuts into exactly `stages` stages so that the dearest is as cheap as can be, to 5 %; among these, those that send
/// the fewest bytes. `cost`: by position in the computation's ops, not negative. Throws Error(badUse) where the model
/// cannot be parted that often.
Cuts balancedCuts(const Document& document, const Computation& computation, std::size_t stages,
                  const std::vector<double>& cost);

/// What ops cost by parameters (elements), or by bytes (of the activations they make and of parameters and buffers). A
/// parameter is paid by the first op that uses it.
std::vector<double> parameterCosts(const Document& document, const Computation& computation);
std::vector<double> byteCosts(const Document& document, const Computation& computation);

}  // namespace retrograd
