#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/base/tensor_statistics.h"
#include "core/derivation/analysis.h"
#include "core/judge/claim.h"
#include "core/questions/nan_walk.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// An element that is not finite.
struct BadPlace {
  std::vector<std::int64_t> index;  ///< one for each dimension
  std::string number;               ///< "nan", "inf", "-inf"; of a complex number "inf" where either part is
};

/// How many a person is shown.
inline constexpr std::size_t shownBadPlaces = 20;

/// The first elements that are NaN or infinite, in order, at most `most`.
std::vector<BadPlace> badPlaces(const TensorData& tensor, std::size_t most = shownBadPlaces);

/// "nan at [0, 3], [2, 1]; -inf at [1, 0]", "..." behind it where there are more than these of `all`; empty where there
/// are none.
std::string describe(const std::vector<BadPlace>& places, std::size_t all);

/// An input of a computation that has NaN or infinities itself, for people: "the input x, inf at [5, 3] (1 of 192
/// elements)", "the parameter layer.weight, ...". The places are left out where its numbers are not at hand, as those
/// of a cotangent. `statistics`: of `value`.
std::string badInputText(const Analysis& analysis, ValueId value, const TensorStatistics& statistics);

/// "3 NaN, 1 Inf of 8 elements"
std::string badCounts(const TensorStatistics& statistics);

/// What a walk found, a fault each: the root of the value asked for, then the others. Empty where nothing is bad.
std::vector<Claim> claimsOf(const Analysis& analysis, const NanWalk& walk);

}  // namespace retrograd
