#pragma once
#include <set>
#include <string>

#include "core/derivation/analysis.h"

namespace retrograd {

/// What opaque ops leave out of a check, by the names that a reference has.
struct LeftOutNames {
  std::set<std::string> names;    ///< outputs, gradients and mutations that there are not
  std::set<std::string> partial;  ///< gradients of which LibTorch's autograd, which runs no opaque op, has only a part:
                                  ///< those that the cotangent of an output that is left out leads to
};
LeftOutNames leftOutNames(const Analysis& analysis);

/// "opaque ops did not run: myops.f.default; left out: out.0, grad.p.w, ..."
std::string leftOutNote(const Analysis& analysis, const LeftOutNames& left);

}  // namespace retrograd
