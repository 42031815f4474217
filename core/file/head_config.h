/* SPDX-License-Identifier: MIT
 * The keys of a head's config.json. Private to core/file. */
#ifndef WG_CORE_FILE_HEAD_CONFIG_H
#define WG_CORE_FILE_HEAD_CONFIG_H

#include "core/file/head_file.h"
#include "core/file/hf_keys.h"

/* Reads the keys of `o`; `path` stands in messages. What only tensors say (layers, draft_vocab) stays 0. Errors: EMODEL,
 * EUNSUPPORTED, as wg_head_file_open. */
wg_status wg_head_config_read(wg_head_spec *s, const json_t *o, const char *path, wg_error *err);

#endif
