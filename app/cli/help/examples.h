#pragma once
#include <string>

#include "app/cli/parsing/parser.h"

namespace retrograd::cli {

/// Adds the examples of a subcommand to its help and the manual page; `path` is "trace" or "pipeline split".
/// tests/app/docs_test.py runs each of them.
void addExamples(Parser parser, const std::string& path);

}  // namespace retrograd::cli
