#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/derivation/analysis.h"

namespace retrograd {

/// What a model's run is compared with: the same model otherwise, or another.
struct Counterpart {
  std::string path;  ///< another model or session; empty: the same one
  std::string
      weights;  ///< a checkpoint whose tensors take the place of the weights (GivenData); empty: those of the first
  std::optional<DType> precision;     ///< as DerivationRequest::precision; none: that of the first
  std::optional<Device> device;       ///< none: that of the first
  std::optional<std::uint64_t> seed;  ///< of random ops; none: the same
};

/// Opens and derives it on what `a` ran on, so that nothing differs but what is asked for. Throws as readModel() and
/// analyse().
std::shared_ptr<const Analysis> openCounterpart(const Analysis& a, const Counterpart& other,
                                                const Progress& progress = {});

}  // namespace retrograd
