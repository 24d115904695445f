#pragma once
#include "core/derivation/analysis.h"

namespace retrograd {

/// The model of an analysis as it was read, in a document of its own under the same ids: deriving moves what the
/// computation writes in place to memory of its own, and cutting and deriving stages need to know which values share
/// memory. Of printed traces without types (isUntyped), types and memory are still to be found (boundary.h:
/// completeTypes).
ModelFile asRead(const Analysis& whole);

/// The same of a session's model, in place: a session file keeps the document as it was derived.
void restoreStorages(const ModelFile& model);

/// The model with a document of its own.
ModelFile copyOf(const ModelFile& model);

/// Whether printed traces leave out the types of what ops make.
bool isUntyped(const ModelFile& model);

}  // namespace retrograd
