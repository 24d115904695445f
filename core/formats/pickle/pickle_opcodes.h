#pragma once
#include <cstdint>

namespace retrograd::pickle_opcodes {

/// Opcodes of Python's pickle protocols 0 to 4 that plain data needs.
enum Opcode : std::uint8_t {
  proto = 0x80,
  frame = 0x95,
  stop = '.',
  mark = '(',
  popMark = '1',
  pop = '0',
  none = 'N',
  newTrue = 0x88,
  newFalse = 0x89,
  binInt = 'J',
  binInt1 = 'K',
  binInt2 = 'M',
  long1 = 0x8a,
  binFloat = 'G',
  binUnicode = 'X',
  shortBinUnicode = 0x8c,
  shortBinString = 'U',
  emptyTuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  emptyList = ']',
  append = 'a',
  appends = 'e',
  emptyDict = '}',
  setItem = 's',
  setItems = 'u',
  global = 'c',
  stackGlobal = 0x93,
  reduce = 'R',
  newObject = 0x81,
  build = 'b',
  persistent = 'Q',
  binPut = 'q',
  longBinPut = 'r',
  binGet = 'h',
  longBinGet = 'j',
  memoize = 0x94,
  // Only next to tensors (PickleRecord::opaque):
  shortBinBytes = 'C',
  binBytes = 'B',
  binBytes8 = 0x8e,
  byteArray8 = 0x96,
  binUnicode8 = 0x8d,
  long4 = 0x8b,
  emptySet = 0x8f,
  addItems = 0x90,
  frozenSet = 0x91,
  newObjectWithKeywords = 0x92
};

}  // namespace retrograd::pickle_opcodes
