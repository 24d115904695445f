#pragma once
#include <string>
#include <vector>

#include "core/formats/json/json_tree.h"
#include "core/trace/document.h"

namespace retrograd::pt2 {

/// The symbols over which the sizes of `document` are expressions, with their hints and the ranges of the program's
/// `range_constraints`. Sizes that only data decide ("u0") are not symbols of the inputs and are left out.
std::vector<SizeSymbol> readSizeSymbols(const Json& program, const Document& document);

/// The program's `guards_code`.
std::vector<std::string> readGuards(const Json& program);

}  // namespace retrograd::pt2
