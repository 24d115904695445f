#pragma once
#include <string>

#include "core/trace/trace.h"

namespace retrograd {

/// A trace as one pass left it.
struct PassResult {
  std::string pass;  ///< as in the trace's history: "Dead code elimination"
  Trace trace;
};

}  // namespace retrograd
