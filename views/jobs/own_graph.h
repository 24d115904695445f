#pragma once
#include <QColor>
#include <QFont>
#include <QTextDocument>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/jobs/job_log.h"

namespace retrograd::views {

/// An op of a graph's text.
struct OwnOp {
  int line = 0;           ///< in the text, from 1
  std::string target;     ///< "torch.ops.aten.mm.default"
  std::string source;     ///< "/job/train.py:99"; empty where the text has no stack trace
  bool backward = false;  ///< the text marks it as of the backward (PyTorch 2.15)
};

/// A graph of a log made ready to be shown.
struct OwnGraph {
  std::shared_ptr<QTextDocument> document;
  std::vector<OwnOp> ops;         ///< in the order of the text; none where it is not a graph, or cannot be read as one
  bool hasBackwardMarks = false;  ///< OwnOp::backward means something
};

/// How a text looks, and the thread that will show it.
struct OwnGraphLook {
  QFont font;
  QColor comment, op;
  QThread* thread = nullptr;
};

/// Reads a graph of the log. For any thread; takes its time for a large text. An error of the log is the text.
OwnGraph readOwnGraph(const jobs::JobLog& log, const jobs::GraphRecord& record, const OwnGraphLook& look);

/// The op at a line: of that line, of the line below a comment, else the last before it. Null where there is none.
const OwnOp* opAt(const OwnGraph& graph, int line, bool isComment);

/// The first op of `graph` from the same line of Python as `op`; one of the same kind before others. In the same graph
/// (a joint) it is one of the other half. Null where there is none.
const OwnOp* counterpart(const OwnOp& op, const OwnGraph& graph, bool sameGraph);

}  // namespace retrograd::views
