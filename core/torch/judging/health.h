#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/analysis.h"

namespace retrograd {

/// A tensor with numbers that are not finite.
struct BadTensor {
  std::string name;  ///< "out.0", "grad.p.w", "mut.b.mean" as a reference names results; "p.w", "b.mean" as given
  std::size_t nan = 0, infinite = 0, elements = 0;
};

/// Whether a run is sound, apart from whether it agrees with PyTorch: a NaN or an infinity in the loss, a gradient, a
/// parameter or a buffer is a fault even where PyTorch has the same. Infinities of a mask are none
/// (questions/intended_infinities.h).
struct Health {
  std::vector<BadTensor> bad;
  std::vector<std::string> roots;  ///< where the NaN and infinities come from, in order of the run
  std::vector<std::string> notes;  ///< NaN and infinities elsewhere, which do not make the run unsound

  bool sound() const { return bad.empty(); }
  /// Notes a tensor where it has a NaN or an infinity.
  void addIfBad(const std::string& name, const TensorData& tensor);
};

/// Judges a run by its results (namedResults()) and by what it was given. `expected`: names of outputs that a reference
/// holds; such an output that is not the loss may have what the reference has. `elsewhere`: some value of the run has a
/// NaN or an infinity that is not meant.
Health healthOf(const Analysis& analysis, const TensorMap& run, const std::set<std::string>& expected, bool elsewhere,
                const Progress& progress);

/// "out.0 has 2 NaN and 0 infinities among 4 elements"
std::string describe(const BadTensor& tensor);
/// The same of the first bad tensor, with where it comes from; empty where the run is sound.
std::string describe(const Health& health);
/// The ops that finite numbers first became something else in, in order of the run, with module and line; inputs that
/// are not finite themselves, with the places. Runs the model once.
std::vector<std::string> rootsOfNonFinite(const Analysis& analysis, const Progress& progress);
/// "first made by ROOT; also in the input x, nan at [0] (1 of 4 elements)"; empty where there is none.
std::string describeRoots(const std::vector<std::string>& roots);

/// "not healthy: NaN or infinities are first made by ROOT; out.0 has 1 NaN and 0 infinities among 1 elements"
std::string healthText(const Health& health);
nlohmann::ordered_json toJson(const Health& health);

}  // namespace retrograd
