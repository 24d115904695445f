#include "core/formats/listing/call_target.h"

#include <fmt/format.h>

#include <cctype>

#include "core/formats/jobs/dynamo_ops.h"

namespace retrograd::jobs {

using Kind = fx::Expression::Kind;

bool isOpCall(const fx::Expression& call) {
  return call.is(Kind::call) && call.items[0].is(Kind::path) && call.items[0].text.starts_with(opsPrefix);
}

CallTarget targetOf(const fx::Expression& call) {
  CallTarget target;
  std::string space = "python", name;
  std::size_t first = call.is(Kind::call) ? 1 : 0;
  if (call.is(Kind::call) && call.items[0].is(Kind::path)) {
    const auto& path = call.items[0].text;
    const auto dot = path.rfind('.');
    name = dot == std::string::npos ? path : path.substr(dot + 1);
    if (dot != std::string::npos) space = path.substr(0, dot);
  } else if (call.is(Kind::call) && call.items[0].is(Kind::attribute)) {
    space = "Tensor";
    name = call.items[0].text;
    target.operands.push_back(&call.items[0].items[0]);
  } else {
    const bool isOperator = call.is(Kind::binary) || call.is(Kind::unary) || call.is(Kind::inPlace);
    name = call.is(Kind::item) ? "getitem" : isOperator ? operatorName(call.text) : "expression";
    first = 0;
  }
  for (auto i = first; i < call.items.size(); ++i) target.operands.push_back(&call.items[i]);
  if (isOpCall(call)) {
    target.op = call.items[0].text;
    return target;
  }
  for (auto* text : {&space, &name})
    for (auto& c : *text)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  target.op = fmt::format("{}{}.{}.default", opsPrefix, space, name);
  return target;
}

}  // namespace retrograd::jobs
