#pragma once
#include "views/engine/versions.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// What whoever fixes a defect asks for first, as Markdown: versions, the file with its seed, partition, device and
/// problems, and of the op its schema, call, shapes, strides and dtypes. No contents of tensors, and of files the names
/// only. Both `document` and `op` may be missing.
QString bugReport(const OpenDocument* document, BoundSymbolId op, const Execution& execution, const Versions& versions);

}  // namespace retrograd::views
