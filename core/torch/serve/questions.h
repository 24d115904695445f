#pragma once
#include <string>
#include <vector>

#include "core/serve/serve.h"
#include "core/torch/opening/open_request.h"

namespace retrograd {

/// The questions of `retrograd serve`: a table over the debugger's commands (torch/script), the judge and what else
/// answers as data. Files stay open from one question to the next. `request`: what models are opened with, apart from
/// their path. Each answer is on the thread that asks.
std::vector<Method> questionMethods(const OpenRequest& request);

}  // namespace retrograd
