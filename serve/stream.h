/* SPDX-License-Identifier: MIT
 * A job as server-sent events: one event for each round of each answer, `data: {...}` and an empty line, at the end
 * `data: [DONE]`. Events are written when the client is ready to read them, so a slow reader costs no more memory than its
 * answers. */
#ifndef WG_SERVE_STREAM_H
#define WG_SERVE_STREAM_H

#include "serve/job.h"

/* The response that streams the job and leaves it (wgs_job_leave) at its end. NULL: out of memory; then the job is left. */
struct MHD_Response *wgs_stream_response(wgs_job *j);

#endif
