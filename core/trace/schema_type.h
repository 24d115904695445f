#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace retrograd {

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

}  // namespace retrograd
