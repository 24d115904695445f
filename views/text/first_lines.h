#pragma once
#include "core/formats/model/model_file.h"
#include "views/text/line_text.h"

namespace retrograd::views {

/// How the computation of a file begins, for as long as what follows from it is being derived: text alone, which needs
/// no tables that grow meanwhile.
struct FirstLines {
  std::vector<LineText> lines;  ///< of the first ops, those in bodies of higher-order ops left out
  std::size_t ops = 0;          ///< of the whole computation, counted in the same way
};

/// Of a computation that takes a noticeable time to derive; of a smaller one none, since what is derived is there as
/// fast.
FirstLines firstLines(const ModelFile& file);

}  // namespace retrograd::views
