#pragma once
// Handles of CUDA libraries that are not needed: see cublas_v2.h.
typedef struct cublasLtContext* cublasLtHandle_t;
