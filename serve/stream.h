/* SPDX-License-Identifier: MIT
 * A job as server-sent events: one event for each round of each answer, `data: {...}` and an empty line, at the end
 * `data: [DONE]`. Events are written when the client is ready to read them, so the events for a slow
 * client take no memory. */
#ifndef WG_SERVE_STREAM_H
#define WG_SERVE_STREAM_H

#include "serve/job.h"

/* The response that streams the job and leaves it (wgs_job_leave) at its end. NULL: memory ran out, and the job was left. */
struct MHD_Response *wgs_stream_response(wgs_job *j);

#endif
