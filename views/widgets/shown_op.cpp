#include "views/widgets/shown_op.h"

#include "views/text/line_text.h"
#include "views/widgets/command_key.h"

namespace retrograd::views {

ShownOp::ShownOp(ViewContext context, QWidget* parent) : QLabel(parent), context_(context) {
  setObjectName(QStringLiteral("shown-op"));
  setAccessibleName(tr("Which op is shown"));
  setTextFormat(Qt::PlainText);
  setWordWrap(true);
  setContentsMargins(8, 3, 8, 3);
  hide();
  connect(context_.selection, &Selection::changed, this, &ShownOp::tell);
  connect(context_.execution, &ExecutionState::changed, this, &ShownOp::tell);
  connect(context_.controller, &DocumentController::documentChanged, this, &ShownOp::tell);
}

void ShownOp::tell() {
  const auto& open = context_.controller->document();
  const auto& now = context_.execution->now();
  const auto op = context_.selection->op();
  if (now.running && op) return;  // it says where the run stopped
  const bool isElsewhere = open && context_.selection->analysis() == open->analysis && op && now.available &&
                           now.position > 0 && now.current && now.current != op;
  setVisible(isElsewhere);
  if (!isElsewhere) return;
  const auto& document = *open->analysis->document;
  const auto key = keyText(*this, "to-execution");
  setText(tr("Shows #%1 %2. The run is at #%3 %4%5")
              .arg(op.index)
              .arg(shortOpName(document, op))
              .arg(now.current.index)
              .arg(shortOpName(document, now.current), key.isEmpty() ? QString() : tr(": %1 goes there").arg(key)));
}

}  // namespace retrograd::views
