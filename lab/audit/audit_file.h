/* SPDX-License-Identifier: MIT
 * Feeds a file of records to an auditor: JSON lines (audit_reader.h), one JSON document over several lines, or a trace of this
 * program, whose cells are the streams. A document is a record, a list of records, or an object with a list `results` of them,
 * as the speed bench of llama.cpp writes. */
#ifndef WG_LAB_AUDIT_AUDIT_FILE_H
#define WG_LAB_AUDIT_AUDIT_FILE_H

#include "lab/audit/auditor.h"

/* rule: for streams whose header names none; "": none. ENOENT, EIO, EFORMAT, EINVAL. */
wg_status wg_audit_file(wg_auditor *a, const char *path, const char *rule, wg_error *err);

#endif
