#pragma once
// The headers in this folder have the names of CUDA libraries whose handles ATen's headers mention and the NCCL backend
// never uses. They declare these types and nothing else, so that it is compiled without those libraries.
typedef struct cublasContext* cublasHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0 };
