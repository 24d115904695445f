#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/tensor_meta.h"

namespace retrograd::fuzz {

/// An argument of a call: a literal, a value, a body, or a list of these.
struct Arg {
  enum class Kind : std::uint8_t {
    missing,
    none,
    value,
    boolean,
    integer,
    real,
    complex,
    string,
    dtype,
    layout,
    memoryFormat,
    device,
    list,
    body
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< value id, body index, number, truth, DType, layout or memory format
  std::int64_t perSize = 0;  ///< of an integer that depends on the symbolic size s0: it is perSize * s0 + integer
  double real = 0, imaginary = 0;
  std::string text;
  std::vector<Arg> items;

  static Arg of(Kind kind, std::int64_t integer) {
    Arg a;
    a.kind = kind;
    a.integer = integer;
    return a;
  }
  static Arg missing() { return of(Kind::missing, 0); }
  static Arg none() { return {}; }
  static Arg value(int id) { return of(Kind::value, id); }
  static Arg boolean(bool b) { return of(Kind::boolean, b); }
  static Arg number(std::int64_t i) { return of(Kind::integer, i); }
  static Arg number(double d) {
    auto a = of(Kind::real, 0);
    a.real = d;
    return a;
  }
  static Arg string(std::string s) {
    auto a = of(Kind::string, 0);
    a.text = std::move(s);
    return a;
  }
  static Arg dtype(DType d) { return of(Kind::dtype, static_cast<std::int64_t>(d)); }
  static Arg body(int index) { return of(Kind::body, index); }
  static Arg list(std::vector<Arg> items) {
    auto a = of(Kind::list, 0);
    a.items = std::move(items);
    return a;
  }
  static Arg ints(const std::vector<std::int64_t>& numbers) {
    std::vector<Arg> items;
    for (auto n : numbers) items.push_back(number(n));
    return list(std::move(items));
  }
  static Arg values(const std::vector<int>& ids) {
    std::vector<Arg> items;
    for (auto id : ids) items.push_back(value(id));
    return list(std::move(items));
  }
};

/// An op applied: arguments in schema order, or as the higher-order op takes them.
struct Call {
  std::string op;  ///< "aten.add.Tensor", "higher_order.cond"
  std::vector<Arg> args;
  std::vector<int> outputs;           ///< value ids; -1 for None
  std::vector<std::int32_t> returns;  ///< -1 a single value, n >= 0 a list of n values; empty: single values all

  bool isHigherOrder() const { return op.starts_with("higher_order."); }
};

/// What runs under a higher-order op, and the program's own calls.
struct Body {
  std::vector<int> inputs;
  std::vector<Call> calls;
  std::vector<Arg> results;
};

/// What flows in. Its value id is its position among the inputs.
struct Input {
  enum class Kind : std::uint8_t { user, parameter, buffer };
  Kind kind = Kind::user;
  std::string name;
  DType dtype = DType::f64;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;
  std::vector<std::int64_t> perSize;  ///< as Arg::perSize, by dimension; empty where no size is symbolic
  bool noGrad = false;                ///< marked so in the text: never differentiated
  bool grad = false;                  ///< differentiated: floating or complex, not marked, and never written
};

/// How the program is derived and run.
struct Mode {
  bool minCut = false, recomputeAll = false;
  int order = 1;
  std::vector<std::size_t> cuts;          ///< positions among the program's own calls at which pipeline stages begin
  std::optional<std::int64_t> otherSize;  ///< run once more with this for s0
};

/// A program of LibTorch's ops.
struct Program {
  std::vector<Input> inputs;
  Body main;
  std::vector<Body> bodies;
  int values = 0;          ///< value ids in use: [0, values)
  std::uint64_t seed = 0;  ///< of inputs, cotangents and draws
  std::int64_t size = 0;   ///< s0; 0 where no size is symbolic
  Mode mode;
  int writesThroughViews = 0;  ///< as the generator counted them
  bool writesInputs = false, writesBuffers = false;

  std::string nameOf(int value) const {
    return value < static_cast<int>(inputs.size()) ? inputs[static_cast<std::size_t>(value)].name
                                                   : "v" + std::to_string(value);
  }
};

/// Visits `arg` and all below it.
void forEachArg(const Arg& arg, const std::function<void(const Arg&)>& visit);
void forEachArg(Arg& arg, const std::function<void(Arg&)>& visit);
/// Visits every call, bodies' included where a call uses them; a body's calls before the one that runs it.
void forEachCall(const Program& program, const std::function<void(const Call&)>& visit);
/// Ops of the program, those in bodies included and higher-order ones left out.
std::size_t opCount(const Program& program);

}  // namespace retrograd::fuzz
