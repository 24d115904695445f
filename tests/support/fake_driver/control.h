#pragma once
// How fake_driver.h looks into the library of the stand-in.
#include "tests/support/fake_driver/fake_driver.h"

extern "C" {
void fakeCudaReset();
void fakeCudaCounts(retrograd::test::DriverCounts* counts);
/// Lines of calls, or of faults; the text lives until the next call.
const char* fakeCudaCalls();
const char* fakeCudaFaults();
void fakeCudaFailNext(const char* function, int code);
}
