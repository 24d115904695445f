#pragma once
// Handles of CUDA libraries that are not needed: see cublas_v2.h.
enum cusolverStatus_t { CUSOLVER_STATUS_SUCCESS = 0, CUSOLVER_STATUS_INVALID_VALUE = 3 };
