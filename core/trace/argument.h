#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/tensor_meta.h"

namespace retrograd {

/// One argument of a call: a literal, a hole that a bound symbol's operand fills, or a list of these.
struct Argument {
  enum class Kind : std::uint8_t {
    none,     ///< None: an absent optional
    missing,  ///< not given: the schema's default holds
    operand,  ///< hole: `integer` is the index into the bound symbol's operands
    boolean,  ///< `integer` is 0 or 1
    integer,  ///< `text`: its expression over the size symbols, where `integer` is but the hint
    real,     ///< `text` likewise
    complex,  ///< real + imaginary
    string,
    dtype,         ///< `integer` is a DType
    layout,        ///< `integer` is a Layout
    memoryFormat,  ///< `integer` as c10::MemoryFormat: 0 contiguous, 1 preserve, 2 channels_last, 3 channels_last_3d
    device,        ///< `text`
    list,          ///< `items`
    subgraph,      ///< `integer` is a SubgraphId (higher-order ops)
    op             ///< `text`: name of an op given as argument (with_effects)
  };
  Kind kind = Kind::none;
  bool optionalList = false;  ///< a list whose schema type is Tensor?[]
  std::int64_t integer = 0;
  double real = 0, imaginary = 0;
  std::string text;
  std::vector<Argument> items;

  bool operator==(const Argument&) const = default;

  static Argument ofNone() { return {}; }
  static Argument ofMissing() { return make(Kind::missing, 0); }
  static Argument ofOperand(std::int64_t hole) { return make(Kind::operand, hole); }
  static Argument ofBool(bool b) { return make(Kind::boolean, b); }
  static Argument ofInt(std::int64_t i) { return make(Kind::integer, i); }
  static Argument ofReal(double d) {
    auto a = make(Kind::real, 0);
    a.real = d;
    return a;
  }
  static Argument ofComplex(double re, double im) {
    auto a = ofReal(re);
    a.kind = Kind::complex;
    a.imaginary = im;
    return a;
  }
  static Argument ofString(std::string s) {
    auto a = make(Kind::string, 0);
    a.text = std::move(s);
    return a;
  }
  static Argument ofDType(DType d) { return make(Kind::dtype, static_cast<std::int64_t>(d)); }
  static Argument ofLayout(Layout l) { return make(Kind::layout, static_cast<std::int64_t>(l)); }
  static Argument ofMemoryFormat(std::int64_t f) { return make(Kind::memoryFormat, f); }
  static Argument ofDevice(std::string d) {
    auto a = ofString(std::move(d));
    a.kind = Kind::device;
    return a;
  }
  static Argument ofOp(std::string name) {
    auto a = ofString(std::move(name));
    a.kind = Kind::op;
    return a;
  }
  static Argument ofSubgraph(SubgraphId id) { return make(Kind::subgraph, id.index); }
  static Argument ofList(std::vector<Argument> items) {
    auto a = make(Kind::list, 0);
    a.items = std::move(items);
    return a;
  }

  bool isNumber() const {
    return kind == Kind::boolean || kind == Kind::integer || kind == Kind::real || kind == Kind::complex;
  }
  /// The number as a double (0 where it is none).
  double asDouble() const { return kind == Kind::real || kind == Kind::complex ? real : static_cast<double>(integer); }

 private:
  static Argument make(Kind kind, std::int64_t i) {
    Argument a;
    a.kind = kind;
    a.integer = i;
    return a;
  }
};

/// The shape of a call: arguments in schema order with holes, and how flat outputs group into returns.
/// Interned in the Document, so the layers of a model that repeat share one.
struct CallPattern {
  std::vector<Argument> arguments;
  /// For a call with no schema (Python operators, higher-order ops): names of the arguments, else empty.
  std::vector<std::string> names;
  std::int32_t operandCount = 0;
  /// One entry a return: -1 a single value, n >= 0 a list of n values. Empty: one single value each.
  std::vector<std::int32_t> returns;

  bool operator==(const CallPattern&) const = default;
};

/// Visits every operand hole below `argument`, depth first.
template <class Visitor>
void forEachOperand(const Argument& argument, Visitor&& visit) {
  if (argument.kind == Argument::Kind::operand) visit(argument.integer);
  for (const auto& item : argument.items) forEachOperand(item, visit);
}

std::size_t hashOf(const CallPattern&);

}  // namespace retrograd
