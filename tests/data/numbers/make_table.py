#!/usr/bin/env python3
"""Writes what Python makes of the number operators that a file may use, for tests/core/sizes/number_test.cpp: make_table.py > python.txt

A line is "op first-operand : results", one result for each second operand of the line "values" before; "op : results" for an operator of one operand;
"op of operands = result" for single calls. "!" stands for an exception, and for a result that no bool, int of 64 bits or float holds.
"""
import builtins
import math
import operator

VALUES = [-2**63, -7, -2, -1, 0, 1, 3, 63, 2**53 + 1, 2**63 - 1, False, True, -2.5, -0.0, 0.5, 3.0, 2.0**53, 1e300, math.inf, -math.inf, math.nan]


def sym_max(a, b):  # as torch.sym_max on plain numbers
    return float(max(a, b)) if float in (type(a), type(b)) else max(a, b)


def sym_min(a, b):
    return float(min(a, b)) if float in (type(a), type(b)) else min(a, b)


SYMBOLIC = {"float": float, "int": int, "max": sym_max, "min": sym_min, "not": operator.not_, "ite": lambda c, a, b: a if c else b,
            "sum": lambda *v: sum(v)}
BINARY = ["_operator." + name for name in ("add iadd sub mul truediv floordiv mod pow eq ne lt le gt ge and_ or_ xor lshift rshift").split()]
BINARY += ["math.pow", "torch.sym_max", "torch.sym_min"]
UNARY = ["_operator." + name for name in "neg pos abs invert not_ truth index".split()] + ["builtins.abs", "builtins.round"]
UNARY += ["math." + name for name in "ceil floor trunc sqrt cos cosh sin sinh tan tanh asin acos atan exp log log2 fabs isnan".split()]
UNARY += ["torch.sym_float", "torch.sym_int", "torch.sym_not"]
# More operands, and values next to where a rounding changes.
CALLS = [("torch.sym_ite", (True, 3, 4)), ("torch.sym_ite", (0, 3, 4)), ("torch.sym_ite", (math.nan, 3, 2.5)),
         ("torch.sym_sum", ()), ("torch.sym_sum", (1, True, 3)), ("torch.sym_sum", (1, 2.5)), ("torch.sym_sum", (2**63 - 1, 1)),
         ("math.log", (8, 2)), ("math.log", (8, 1)), ("math.log", (8, 0)), ("math.log", (0.5, 10)),
         ("_operator.truediv", (2**63 - 1, 3)), ("_operator.truediv", (-2**63, 2**63 - 1)), ("_operator.truediv", (2**53 + 1, 2**53 + 3)),
         ("_operator.truediv", (6004799503160663, 18014398509481987)), ("_operator.truediv", (1, -2**63)), ("_operator.truediv", (2**63 - 1, 1)),
         ("_operator.floordiv", (1.0, 0.1)), ("_operator.mod", (1.0, 0.1)), ("_operator.floordiv", (-1e-20, 3.0)), ("_operator.mod", (-1e-20, 3.0)),
         ("_operator.floordiv", (6.0, 0.1)), ("_operator.mod", (-7.5, 2)), ("_operator.mod", (7.5, -2)), ("_operator.mod", (5, -math.inf)),
         ("_operator.pow", (3, 39)), ("_operator.pow", (3, 40)), ("_operator.pow", (-2, 63)), ("_operator.pow", (2, 63)), ("_operator.pow", (-1, 2**63 - 1)),
         ("_operator.pow", (10, -2)), ("_operator.pow", (-8, 1 / 3)), ("_operator.pow", (-8.0, -3)), ("_operator.pow", (1e200, 2)),
         ("_operator.lshift", (1, 62)), ("_operator.lshift", (1, 63)), ("_operator.lshift", (-1, 63)), ("_operator.lshift", (0, 1000)),
         ("_operator.lshift", (1, -1)), ("_operator.rshift", (-8, 1)), ("_operator.rshift", (-1, 1000)), ("_operator.rshift", (5, 1000)),
         ("_operator.and_", (12, 10)), ("_operator.or_", (12, 10)), ("_operator.xor", (12, 10)), ("_operator.and_", (True, 2)),
         ("_operator.lt", (2**53 + 1, 2.0**53)), ("_operator.eq", (2**53, 2.0**53)), ("_operator.ge", (2**63 - 1, 2.0**63)), ("_operator.le", (-2**63, -2.0**63)),
         ("math.floor", (2.0**63,)), ("math.floor", (-2.0**63,)), ("math.trunc", (9223372036854774784.0,)), ("math.ceil", (-0.5,)),
         ("math.sqrt", (2,)), ("math.asin", (1.0000001,)), ("math.exp", (710,)), ("math.exp", (-800,))]
CALLS += [("builtins.round", (x,)) for x in (0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 2.0**52 + 0.5, 4.5e15)]
CALLS += [("builtins.round", call) for call in ((2.675, 2), (0.125, 2), (0.375, 2), (1e-10, 3), (1234.5, -2), (1250.0, -2), (1350.0, -2), (49.9, -2), (50.0, -2),
          (50.1, -2), (-51.0, -2), (4.9, -2), (1.7e308, -308), (1e300, 5), (2.5, 400), (1250, -2), (1350, -2), (-1250, -2), (-1251, -2), (7, 3), (2**63 - 1, -1),
          (2**63 - 1, -18), (-2**63, -19), (5, -25), (2.5, 0), (3.5, 0), (1.5, 0.5))]


def function(name):
    module, _, rest = name.partition(".")
    if module == "torch":
        return SYMBOLIC[rest.removeprefix("sym_")]
    return getattr({"_operator": operator, "math": math, "builtins": builtins}[module], rest)


def call(name, *operands):
    if name == "_operator.lshift" and isinstance(operands[1], int) and operands[1] > 10000:
        return "0" if operands[0] == 0 and type(operands[0]) in (int, bool) else "!"
    if name == "_operator.pow" and all(isinstance(v, int) for v in operands) and operands[1] > 10000 and abs(operands[0]) > 1:
        return "!"  # too large to write down
    try:
        result = function(name)(*operands)
    except (ArithmeticError, ValueError, TypeError):
        return "!"
    if not isinstance(result, (bool, int, float)) or (isinstance(result, int) and not -2**63 <= result < 2**63):
        return "!"
    return repr(result)


print("# Made by make_table.py.")
print("values :", *map(repr, VALUES))
for name in BINARY:
    for a in VALUES:
        print(name, repr(a), ":", *(call(name, a, b) for b in VALUES))
for name in UNARY:
    print(name, ":", *(call(name, a) for a in VALUES))
for name, operands in CALLS:
    print(name, "of", *map(repr, operands), "=", call(name, *operands))
