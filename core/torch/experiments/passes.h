#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "core/derivation/analysis.h"
#include "core/trace/trace.h"

namespace retrograd {

/// All that deriving a model went through, over one document.
struct PassTraces {
  std::shared_ptr<const Analysis> analysis;  ///< derived again, the same otherwise; its document is that of the results
  std::vector<PassResult>
      results;  ///< the computation as read, the joint after each pass, then forward and backward ("Split")

  /// The result of the pass of this name, of `kind` where it has several; case does not count, and the beginning of a
  /// name is enough. Throws Error(badUse) listing the passes where there is none.
  std::size_t find(std::string_view pass, TraceKind kind) const;
  /// What the pass of results[i] was given: the result before, for the backward too the joint. Throws Error(badUse) for
  /// what was read.
  const Trace& before(std::size_t i) const;
};

/// Derives the model of an analysis once more with the same inputs and partition, on a copy of its document, and keeps
/// what each pass made: the traces of an open model are the last ones only. Throws as analyse(), Error(badUse) where
/// nothing can be derived.
PassTraces passesOf(const Analysis& analysis, const Progress& progress = {});

}  // namespace retrograd
