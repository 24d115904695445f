#pragma once
#include <map>
#include <string>

#include "core/trace/trace.h"

namespace retrograd {

/// Bound symbol as one line of Python without indentation or comment: `t6 = torch.ops.aten.mm.default(t1, t5)`.
std::string printCall(const Document& document, BoundSymbolId op);
/// The comment behind the line: `t6: "cpu f32[10, 10]", forward: t0: "torch.ops.aten.linear.default", gradient of x`.
std::string printComment(const Document& document, BoundSymbolId op);
/// An argument in Python notation, holes filled with the operands' names.
std::string printArgument(const Document& document, const Argument& argument, std::span<const ValueId> operands);

/// "s77: 4, symbolic size in [2, 512]"
std::string printSizeSymbol(const SizeSymbol& symbol);

struct PrintOptions {
  bool del = true;                           ///< `del t1, t5` after a value's last use
  bool source = true;                        ///< "# module: h.0" and "# file:line: code" where these change
  bool ids = false;                          ///< "#12" first in the comment of each op: its id in the document
  bool comments = true;                      ///< types and origins behind each line
  const Computation* computation = nullptr;  ///< what a computation's inputs and outputs mean, to be said behind them
  const std::map<std::string, Argument>* numbers = nullptr;  ///< values of its inputs that are numbers, by name
  const std::vector<std::string>* guards =
      nullptr;  ///< conditions on sizes under which it was exported (ModelFile::guards)
};
/// The whole trace, Python-like: signature with type comments, one op a line, return. Of what a trace holds nothing is
/// lost but this: of its history the last pass is kept, of a source stack the frame that is shown, an argument that
/// equals the schema's default is as if not given. readTextTrace (formats/text/text_trace.h) reads it back;
/// docs/text-form.md describes it.
std::string printTrace(const Document& document, const Trace& trace, const PrintOptions& options = {});

}  // namespace retrograd
