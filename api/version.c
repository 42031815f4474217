/* SPDX-License-Identifier: MIT
 * The version of the interface, and structs whose size the caller states. */
#include <string.h>

#include "api/api_impl.h"
#include "core/base/mem.h"

int wg_abi(void) { return WG_ABI; }
const char *wg_version(void) { return WG_VERSION; }
void wg_text_free(char *text) { wg_free(text); }

wg_status wg_missing(const char *function, const char *what, wg_error *err)
{
    return wg_fail(err, WG_EINVAL, "%s: %s is NULL", function, what);
}

static wg_status check_size(size_t size, size_t least, const char *name, wg_error *err)
{
    if (size >= least && size < 1 << 16) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s.size is %zu; set it to sizeof(%s), which is at least %zu", name, size, name, least);
}

wg_status wg_struct_in(void *own, size_t own_size, const void *from, size_t least, const char *name, wg_error *err)
{
    size_t size;
    memcpy(&size, from, sizeof size);
    WG_TRY(check_size(size, least, name, err));
    for (size_t i = own_size; i < size; i++)
        if (((const char *)from)[i])
            return wg_fail(err, WG_EUNSUPPORTED,
                           "%s has a member at byte %zu that libwager " WG_VERSION " does not know; use a newer libwager", name,
                           i);
    memcpy(own, from, size < own_size ? size : own_size);
    return WG_OK;
}

wg_status wg_struct_out(void *to, const void *own, size_t own_size, size_t least, const char *name, wg_error *err)
{
    size_t size;
    memcpy(&size, to, sizeof size);
    WG_TRY(check_size(size, least, name, err));
    memcpy((char *)to + sizeof size, (const char *)own + sizeof size, (size < own_size ? size : own_size) - sizeof size);
    return WG_OK;
}
