#pragma once
#include "views/session/document_controller.h"
#include "views/text/format.h"
#include "views/widgets/command_key.h"

namespace retrograd::views {

/// Why there are no numbers of a run where none has run yet, and what to do.
inline QString whyNoNumbers(const QWidget& panel, const DocumentController& controller) {
  const auto& document = controller.document();
  if (document && !document->noRunReason.isEmpty()) return document->noRunReason;
  const auto key = keyText(panel, "continue");
  return tr("Run the model to see its numbers: %1").arg(key.isEmpty() ? tr("Run > Continue") : key);
}

}  // namespace retrograd::views
