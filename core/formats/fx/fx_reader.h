#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::fx {

/// Reads graph text (torch.fx's print_readable), as PyTorch 2.6 to 2.15 writes it: all of `text`, one class with its
/// nested bodies. Nothing in it is executed. `name` is the file or record, for errors. Cost linear in the text. Throws
/// Error(badInput) at "name:line:column".
Graph readGraph(std::string_view text, const std::string& name);

using python::readExpression;

/// A statement of a Python function that is read, not run: `targets = expression`, or the expression alone.
struct Statement {
  std::string target;  ///< "buf0", "load_args._version"; empty where there is none
  Expression expression;
  std::string comment;  ///< behind it, without '#'
  int line = 0;
};

/// What a repro script holds (repro.py, fx_graph_runnable.py): the graph, and how its arguments are loaded. What
/// precedes the class (imports, settings, sources of Triton kernels) is not read.
struct Repro {
  Graph graph;                                ///< class Repro; its values have no types
  std::vector<Statement> loadArgs;            ///< of `def load_args(reader)`, in order; names are paths ("buf0")
  std::map<std::string, std::int64_t> sizes;  ///< lines "s23 = 2" at the start: size symbols with their values
  std::string torchVersion;                   ///< of the line "# torch version: 2.15.0"
  std::vector<Expression> runs;               ///< calls of run_repro: save_dir is a keyword of theirs
};

/// Whether a text has a line "class Repro(torch.nn.Module):".
bool looksLikeRepro(std::string_view text);
/// Throws as readGraph().
Repro readRepro(std::string_view text, const std::string& name);

}  // namespace retrograd::fx
