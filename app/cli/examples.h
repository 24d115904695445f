#pragma once
#include <CLI/CLI.hpp>

namespace retrograd::cli {

/// Adds the examples of a subcommand to its help and the manual page; `path` is "trace" or "pipeline split". tests/app/docs_test.py runs each of them.
void addExamples(CLI::App& app, const std::string& path);

}  // namespace retrograd::cli
