/* SPDX-License-Identifier: MIT
 * The ids of tokens that begin and end a text, in config.json and generation_config.json. */
#include "core/file/hf_keys.h"

/* An id, or a list of ids. */
static wg_status get_ids(const wg_hf_keys *r, const char *key, int64_t *id, size_t most)
{
    const json_t *v = wg_hf_get(r, key);
    const size_t n = json_is_array(v) ? json_array_size(v) : v != NULL;
    if (n > most)
        return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s' lists %zu tokens: at most %zu are supported", r->path, key, n,
                       most);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(v) ? json_array_get(v, i) : v;
        id[i] = json_integer_value(one);
        if (!json_is_integer(one) || id[i] < 0) return wg_hf_wrong(r, key, "a token id, or a list of them");
    }
    return WG_OK;
}

wg_status wg_hf_ids_read(wg_hf_ids *out, const wg_json *generation, const wg_json *config, wg_error *err)
{
    const json_t *text = wg_hf_member(wg_json_root(config), "text_config");
    const wg_hf_keys file[] = {
        { text, wg_json_name(config), "text_config.", err },
        { wg_json_root(config), wg_json_name(config), "", err },
        { generation ? wg_json_root(generation) : NULL, generation ? wg_json_name(generation) : NULL, "", err },
    };
    *out = (wg_hf_ids){ WG_HF_ABSENT, { WG_HF_ABSENT, WG_HF_ABSENT, WG_HF_ABSENT } };
    for (int i = 0; i < 3; i++) {
        const wg_hf_keys r = file[i];
        if (!r.o) continue;
        if (wg_hf_get(&r, "eos_token_id"))
            for (int k = 0; k < WG_HF_ENDS; k++) out->end[k] = WG_HF_ABSENT;
        WG_TRY(get_ids(&r, "bos_token_id", &out->bos, 1));
        WG_TRY(get_ids(&r, "eos_token_id", out->end, WG_HF_ENDS));
    }
    return WG_OK;
}
