#pragma once
#include "views/session/open_document.h"

namespace retrograd::views {

/// Where an op is: its number, by which all places know it, and the trace that it is of: "#12 forward", "#3 computation".
QString placeText(const OpenDocument& document, BoundSymbolId op);

}  // namespace retrograd::views
