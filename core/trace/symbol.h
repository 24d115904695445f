#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/trace/argument.h"

namespace retrograd {

/// An argument or return of an op's schema.
struct SchemaEntry {
  std::string name;
  std::string type;  ///< as LibTorch prints it: "Tensor", "Tensor?[]", "SymInt[2]", "ScalarType?"
  bool keywordOnly = false;
  std::optional<Argument> defaultValue;
  std::int32_t aliasSet = -1;  ///< entries of one set may share storage; -1: none
  bool isWrite = false;        ///< "(a!)": written in place
};

/// An operation: `aten.addmm.default`. What it may do comes from LibTorch's schema and two tables of exceptions:
/// effects.cpp and op_traits.cpp.
struct Symbol {
  std::string name;    ///< "aten.addmm.default", "higher_order.cond", "_operator.add"
  std::string schema;  ///< "aten::addmm(Tensor self, ...) -> Tensor"; empty when unknown
  std::vector<SchemaEntry> arguments;
  std::vector<SchemaEntry> returns;
  bool known = false;      ///< LibTorch has it
  bool isMutable = false;  ///< writes to an argument
  bool isView = false;     ///< a return aliases an argument without writing to it
  bool isRandom = false;   ///< draws from the generator
  bool needsData = false;  ///< its result's shape or value depends on data (item, nonzero)
  bool isHigherOrder = false;

  /// "torch.ops.aten.addmm.default": how it is printed and named in JSON.
  std::string qualifiedName() const;
  int argumentIndex(std::string_view argumentName) const;  ///< -1 when there is none
};

/// Looks an op up in LibTorch ("aten.linear.default"); nullopt when it does not exist or is not allowed (see allow list
/// in torch/tracing/op_table.h). Core's readers take it as a parameter, so that they build and are fuzzed without
/// LibTorch.
using SymbolLookup = std::function<std::optional<Symbol>(std::string_view name)>;

/// A schema's type taken apart: "SymInt[2]?" is an optional list of 2 SymInt.
struct SchemaType {
  std::string element;    ///< "Tensor", "SymInt", "ScalarType", ...
  bool optional = false;  ///< None may stand for the whole
  bool list = false;
  bool optionalElement = false;  ///< "Tensor?[]": None may stand for an element
  std::int32_t length = -1;      ///< fixed length of a list, -1 when it has none

  bool isTensor() const { return element == "Tensor" && !list; }
  bool isTensorList() const { return element == "Tensor" && list; }
  /// A floating-point parameter: an integer given for it means a real.
  bool isReal() const { return element == "float" || element == "SymFloat"; }
};

/// Takes apart a type as LibTorch prints it (SchemaEntry::type). Lists of lists keep the inner brackets in `element`.
SchemaType parseSchemaType(std::string_view text);

/// The arguments of a call as Python would be given them. Pointers into the pattern or the symbol's defaults; valid as
/// long as both.
struct CallArguments {
  std::vector<const Argument*> positional;
  std::vector<std::pair<std::string_view, const Argument*>> keyword;
};

/// Positional arguments in schema order and keyword-only ones. What equals the schema's default is left out where that
/// is possible (at the end of the positional ones, any keyword one); a gap before a given argument is filled with the
/// default.
CallArguments callArguments(const Symbol& symbol, const CallPattern& pattern);

}  // namespace retrograd
