/* SPDX-License-Identifier: MIT
 * WG_HD: a function that the host and, under nvcc, the device call. Private to kernels/. */
#ifndef WG_KERNELS_HD_H
#define WG_KERNELS_HD_H

#ifdef __CUDACC__
#define WG_HD __host__ __device__
#else
#define WG_HD
#endif

#endif
