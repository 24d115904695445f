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
/// From the stand-in for LibTorch's CUDA half (played_gpu/driver_account.h).
void fakeCudaLibTorchWaits(const char* who);
void fakeCudaLibTorchTakes(void* memory, std::size_t bytes);
void fakeCudaLibTorchReleases(void* memory);
}
