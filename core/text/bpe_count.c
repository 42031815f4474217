/* SPDX-License-Identifier: MIT
 * Training of byte-level BPE, first part: the words of texts and how often each stands there. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/text/bpe_train.h"
#include "core/text/unicode.h"

enum { PART = 1 << 20, WHOLE = 1 << 30 };

wg_status wg_bpe_trainer_open(wg_bpe_trainer *t, const wg_pretok_row *row, wg_error *err)
{
    *t = (wg_bpe_trainer){ .row = row };
    return wg_pretok_open_row(&t->pretok, row, err);
}

void wg_bpe_trainer_close(wg_bpe_trainer *t)
{
    wg_byte_strings_free(&t->words);
    wg_byte_strings_free(&t->token);
    wg_free(t->merge);
    wg_free(t->pretok);
    *t = (wg_bpe_trainer){ 0 };
}

/* The words of n bytes that end where words end. */
static wg_status count_words(wg_bpe_trainer *t, const char *s, size_t n, wg_error *err)
{
    wg_splitter x;
    wg_piece word;
    uint32_t number;
    wg_splitter_begin(&x, t->pretok, s, n);
    while (wg_splitter_next(&x, &word)) {
        WG_TRY(wg_byte_strings_add(&t->words, s + word.at, word.end - word.at, 1, &number, err));
        t->read++;
    }
    t->bytes += n;
    return WG_OK;
}

static wg_status check_text(const char *name, const char *s, size_t n, uint64_t before, wg_error *err)
{
    uint32_t cp;
    for (size_t i = 0; i < n; i += wg_utf8_decode(s + i, n - i, &cp)) {
        if ((unsigned char)s[i] < 0x80) continue;
        wg_utf8_decode(s + i, n - i, &cp);
        if (cp == WG_UTF8_BAD)
            return wg_fail(err, WG_EFORMAT,
                           "%s: byte %llu (0x%02x) is not UTF-8: expected plain text in UTF-8; convert it, or "
                           "leave the file out",
                           name, (unsigned long long)(before + i), (unsigned char)s[i]);
    }
    return WG_OK;
}

wg_status wg_bpe_trainer_add(wg_bpe_trainer *t, const char *name, const char *text, size_t n, wg_error *err)
{
    const size_t mark = wg_byte_order_mark(text, n);
    WG_TRY(check_text(name, text, n, 0, err));
    return count_words(t, text + mark, n - mark, err);
}

typedef struct input {
    const char *path;
    int fd;
    char *s;
    size_t n, room, checked; /* bytes in s; of them known to be UTF-8 */
    uint64_t before;         /* bytes of the file before s */
    bool ended;
} input;

static wg_status fill(input *in, size_t want, wg_error *err)
{
    WG_TRY(wg_grow((void **)&in->s, &in->room, want, 1, "a part of a text", err));
    while (in->n < want && !in->ended) {
        const ssize_t got = read(in->fd, in->s + in->n, want - in->n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return wg_fail(err, WG_EIO, "%s: cannot read: %s", in->path, strerror(errno));
        in->n += (size_t)got;
        in->ended = got == 0;
    }
    const size_t whole = in->ended ? in->n : in->n - wg_utf8_open_tail(in->s, in->n);
    if (whole > in->checked)
        WG_TRY(check_text(in->path, in->s + in->checked, whole - in->checked, in->before + in->checked, err));
    in->checked = whole > in->checked ? whole : in->checked;
    return WG_OK;
}

static void drop(input *in, size_t n)
{
    memmove(in->s, in->s + n, in->n - n);
    in->n -= n;
    in->checked -= n;
    in->before += n;
}

/* A part is read to the last place where it can be cut; where there is none, more is read. */
static wg_status read_parts(wg_bpe_trainer *t, input *in, wg_error *err)
{
    WG_TRY(fill(in, PART, err));
    drop(in, wg_byte_order_mark(in->s, in->n));
    for (size_t part = PART;;) {
        WG_TRY(fill(in, part, err));
        const size_t cut = in->ended ? in->n : wg_pretok_cut(t->pretok, in->s, in->checked);
        if (cut > 0) WG_TRY(count_words(t, in->s, cut, err));
        if (in->ended) return WG_OK;
        drop(in, cut);
        part = cut > 0 ? PART : 2 * part;
        if (part > WHOLE)
            return wg_fail(err, WG_EFORMAT, "%s: a word of more than %d MB from byte %llu on: expected plain text", in->path,
                           WHOLE >> 21, (unsigned long long)in->before);
    }
}

wg_status wg_bpe_trainer_read(wg_bpe_trainer *t, const char *path, wg_error *err)
{
    input in = { .path = path, .fd = open(path, O_RDONLY | O_CLOEXEC) };
    if (in.fd < 0) return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open: %s", path, strerror(errno));
    const wg_status s = read_parts(t, &in, err);
    close(in.fd);
    wg_free(in.s);
    return s;
}
