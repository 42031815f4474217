/* SPDX-License-Identifier: MIT
 * tokenizer.model of SentencePiece as the keys of a GGUF file. The file is a protobuf message, of which this is read:
 *   ModelProto      1 piece (repeated), 2 trainer, 3 normalizer
 *   piece           1 text, 2 score (float), 3 type (as tokenizer.ggml.token_type; 1 when missing)
 *   trainer         3 model type (1 Unigram, 2 BPE), 24 white space as a suffix, 40 unknown, 41 first, 42 last token
 *   normalizer      2 map of characters, 3 a space before a text, 4 superfluous spaces are removed, 5 spaces become U+2581
 * Tokens that stand beside the file (core/file/hf_added.c) are added to those of it. Other fields are passed over. A map of
 * characters becomes a step of the normaliser (core/text/normal.h). */
#include <stdio.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/file/hf_tokenizer_impl.h"

enum { VARINT, FIXED64, BYTES, FIXED32 = 5 }; /* how a field is written */
enum { UNIGRAM = 1, BPE, NORMAL = 1, UNUSED = 5, TYPE_MOST = 6, PAD_TEXT = 20 };

typedef struct model {
    const char *path;
    wg_text *text;
    float *score;
    int32_t *type;
    int32_t *flags; /* of added tokens */
    char *pads;     /* names of ids without a token */
    int rows;       /* of the embedding */
    int n;          /* tokens: at least as many, and WG_HF_BEYOND more while they are read */
    int64_t pieces, kind, unknown, first, last;
    bool suffix, prefix, squeeze, escape, adds_first;
    wg_text map;
    int64_t end[WG_HF_ENDS];
    int64_t eos; /* of the folder; -1: it does not say */
    const wg_hf_added *added;
    wg_error *err;
} model;

typedef struct field {
    uint64_t number, value; /* value: of a varint or of fixed bytes */
    int wire;
    wg_text bytes;
} field;

/* A cursor over a message. */
typedef struct cursor {
    const unsigned char *s;
    size_t at, n;
} cursor;

static bool varint(cursor *c, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; c->at < c->n && shift < 64; shift += 7) {
        const unsigned char b = c->s[c->at++];
        *out |= (uint64_t)(b & 127) << shift;
        if (b < 128) return true;
    }
    return false;
}

/* The next field; false: the message is broken. */
static bool next_field(cursor *c, field *f)
{
    uint64_t key, len = 0;
    if (!varint(c, &key)) return false;
    *f = (field){ .number = key >> 3, .wire = (int)(key & 7) };
    if (f->wire == VARINT) return varint(c, &f->value);
    if (f->wire == FIXED32 || f->wire == FIXED64) len = f->wire == FIXED32 ? 4 : 8;
    else if (f->wire != BYTES || !varint(c, &len)) return false;
    if (len > c->n - c->at) return false;
    f->bytes = (wg_text){ (const char *)c->s + c->at, (size_t)len };
    if (f->wire != BYTES) memcpy(&f->value, f->bytes.s, (size_t)len);
    c->at += (size_t)len;
    return true;
}

static cursor inside(wg_text t) { return (cursor){ (const unsigned char *)t.s, 0, t.n }; }

static wg_status broken(const model *m, size_t at)
{
    return wg_fail(m->err, WG_EFORMAT, "%s: byte %zu: expected a field of a SentencePiece model; download the file again",
                   m->path, at);
}

static wg_status read_piece(model *m, wg_text message, size_t at)
{
    cursor c = inside(message);
    field f;
    const int64_t i = m->pieces++;
    if (i >= m->n)
        return wg_fail(m->err, WG_EMODEL,
                       "%s: there are more tokens than the %d rows of the embedding; do the files belong together?", m->path,
                       m->rows);
    m->type[i] = NORMAL;
    while (c.at < c.n) {
        if (!next_field(&c, &f)) return broken(m, at + c.at);
        if (f.number == 1 && f.wire == BYTES) m->text[i] = f.bytes;
        if (f.number == 2 && f.wire == FIXED32) memcpy(&m->score[i], f.bytes.s, 4);
        if (f.number == 3 && f.wire == VARINT) m->type[i] = f.value <= TYPE_MOST ? (int32_t)f.value : 0;
    }
    if (m->type[i] >= NORMAL && m->text[i].n > 0) return WG_OK;
    return wg_fail(m->err, WG_EMODEL, "%s: token %d is empty, or its type is none of 1..%d; download the file again", m->path,
                   (int)i, TYPE_MOST);
}

static wg_status read_trainer(model *m, wg_text message, size_t at)
{
    cursor c = inside(message);
    field f;
    while (c.at < c.n) {
        if (!next_field(&c, &f)) return broken(m, at + c.at);
        if (f.wire != VARINT) continue;
        const int64_t v = (int32_t)f.value;
        if (f.number == 3) m->kind = v;
        if (f.number == 24) m->suffix = v;
        if (f.number == 40) m->unknown = v;
        if (f.number == 41) m->first = v;
        if (f.number == 42) m->last = v;
    }
    return WG_OK;
}

static wg_status read_normalizer(model *m, wg_text message, size_t at)
{
    cursor c = inside(message);
    field f;
    while (c.at < c.n) {
        if (!next_field(&c, &f)) return broken(m, at + c.at);
        if (f.number == 2 && f.wire == BYTES) m->map = f.bytes;
        if (f.wire != VARINT) continue;
        if (f.number == 3) m->prefix = f.value;
        if (f.number == 4) m->squeeze = f.value;
        if (f.number == 5) m->escape = f.value;
    }
    return WG_OK;
}

static wg_status read_model(model *m, const char *bytes, size_t n)
{
    cursor c = { (const unsigned char *)bytes, 0, n };
    field f;
    while (c.at < c.n) {
        if (!next_field(&c, &f)) return broken(m, c.at);
        const size_t at = c.at - f.bytes.n;
        if (f.wire != BYTES) continue;
        if (f.number == 1) WG_TRY(read_piece(m, f.bytes, at));
        if (f.number == 2) WG_TRY(read_trainer(m, f.bytes, at));
        if (f.number == 3) WG_TRY(read_normalizer(m, f.bytes, at));
    }
    return m->pieces > 0 ? WG_OK : broken(m, 0);
}

static wg_status refuse(const model *m, const char *what)
{
    return wg_fail(m->err, WG_EUNSUPPORTED,
                   "%s: %s is not implemented; there are Unigram and BPE, with spaces as U+2581 in front of words", m->path,
                   what);
}

static wg_status add_tokens(model *m)
{
    enum { CONTROL = WG_HF_CONTROL, USER = WG_HF_USER };
    for (size_t i = 0; m->added && i < m->added->n; i++) {
        const wg_hf_token *t = &m->added->token[i];
        if (t->id >= m->n)
            return wg_fail(m->err, WG_EMODEL,
                           "%s: the added token '%.60s' has the id %lld: expected one below %d, the rows of the embedding",
                           m->path, t->text.s, (long long)t->id, m->rows);
        wg_text *at = &m->text[t->id];
        if (at->s && (at->n != t->text.n || memcmp(at->s, t->text.s, at->n) != 0))
            return wg_fail(m->err, WG_EMODEL, "%s: its token %lld is '%.*s', and '%.60s' beside it; download the files again",
                           m->path, (long long)t->id, (int)(at->n < 60 ? at->n : 60), at->s, t->text.s);
        if (!at->s || m->type[t->id] == NORMAL) m->type[t->id] = t->special ? CONTROL : USER;
        *at = t->text;
        m->flags[t->id] = t->flags;
    }
    while (m->n > m->rows && !m->text[m->n - 1].s) m->n--;
    return WG_OK;
}

/* The id of a text that the folder names; *id stays when it names none. */
static wg_status find(const model *m, const char *what, wg_text t, int64_t *id)
{
    if (!t.s) return WG_OK;
    for (int i = 0; i < m->n; i++)
        if (m->text[i].s && m->text[i].n == t.n && memcmp(m->text[i].s, t.s, t.n) == 0) return *id = i, WG_OK;
    return wg_fail(m->err, WG_EMODEL,
                   "%s: the %s '%.60s' of tokenizer_config.json is no token, nor is it an added one; download the files again",
                   m->path, what, t.s);
}

/* Which tokens begin and end a text. */
static wg_status find_special(model *m, const wg_hf_ids *ids)
{
    if (m->first < 0) m->first = ids->bos;
    if (m->added) WG_TRY(find(m, "bos_token", m->added->bos, &m->first));
    if (m->added) WG_TRY(find(m, "eos_token", m->added->eos, &m->eos));
    if (m->eos >= m->rows && m->added->add_eos <= 0) {
        wg_log(WG_LOG_WARN,
               "%s: the eos_token of tokenizer_config.json has the id %lld, beyond the %d rows of the embedding: no text "
               "can end with it, so it is dropped",
               m->path, (long long)m->eos, m->rows);
        m->eos = -1;
    }
    int at = 0;
    for (; at < WG_HF_ENDS && ids->end[at] >= 0; at++) m->end[at] = ids->end[at];
    if (at == 0 && m->eos < 0) m->end[at++] = m->last;
    bool there = m->eos < 0;
    for (int i = 0; i < at; i++) there = there || m->end[i] == m->eos;
    if (!there && at < WG_HF_ENDS) m->end[at++] = m->eos;
    while (at < WG_HF_ENDS) m->end[at++] = -1;
    return WG_OK;
}

static wg_status check(const model *m)
{
    if (m->kind != UNIGRAM && m->kind != BPE) return refuse(m, "a SentencePiece model of words or characters");
    if (m->suffix || !m->escape) return refuse(m, "white space behind words, or kept as it is,");
    const int64_t last[] = { m->unknown, m->first, m->end[0], m->end[1], m->end[2] };
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        if (last[i] >= m->rows)
            return wg_fail(m->err, WG_EMODEL,
                           "%s: the id of a special token is %lld: expected one below %d, the rows of the embedding", m->path,
                           (long long)last[i], m->rows);
    return WG_OK;
}

static void name_unused(model *m)
{
    for (int i = 0; i < m->n; i++) {
        char *to = m->pads + i * PAD_TEXT;
        if (m->text[i].s) continue;
        m->text[i] = (wg_text){ to, (size_t)snprintf(to, PAD_TEXT, WG_HF_PAD, i) };
        m->type[i] = UNUSED;
    }
}

static void write(const model *m, wg_gguf_writer *g)
{
    const char *kind = m->kind == UNIGRAM ? "t5" : "llama";
    const size_t n = (size_t)m->n;
    wg_text words[3];
    size_t used = 0;
    if (m->map.n > 0) {
        words[used++] = (wg_text){ "charsmap", 8 };
        words[used++] = m->map;
    }
    if (m->squeeze) words[used++] = (wg_text){ "squeeze", 7 };
    wg_gguf_set_string(g, "tokenizer.ggml.model", kind, strlen(kind));
    if (used > 0) wg_gguf_set_strings(g, "tokenizer.wager.normalizer", words, used);
    wg_gguf_set_bool(g, "tokenizer.wager.fuse_unk", true);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_space_prefix", m->prefix);
    const char *spaces = m->added && m->prefix && !m->squeeze ? m->added->metaspace : NULL;
    if (spaces) wg_gguf_set_string(g, "tokenizer.wager.metaspace", spaces, strlen(spaces));
    wg_gguf_set_strings(g, "tokenizer.ggml.tokens", m->text, n);
    wg_gguf_set_i32s(g, "tokenizer.ggml.token_type", m->type, n);
    wg_gguf_set_f32s(g, "tokenizer.ggml.scores", m->score, n);
    for (size_t i = 0; i < n; i++)
        if (m->flags[i]) {
            wg_gguf_set_i32s(g, "tokenizer.wager.added", m->flags, n);
            break;
        }
    if (m->unknown >= 0) wg_gguf_set_u32(g, "tokenizer.ggml.unknown_token_id", (uint32_t)m->unknown);
    if (m->first >= 0) wg_gguf_set_u32(g, "tokenizer.ggml.bos_token_id", (uint32_t)m->first);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_bos_token", m->adds_first);
    for (int i = 0; i < WG_HF_ENDS; i++)
        if (m->end[i] >= 0) wg_gguf_set_u32(g, wg_hf_end_keys[i], (uint32_t)m->end[i]);
    const int32_t behind = (int32_t)(m->eos >= 0 ? m->eos : m->end[0]);
    if (!m->added || m->added->add_eos <= 0 || behind < 0) return;
    if (behind == m->end[0]) wg_gguf_set_bool(g, "tokenizer.ggml.add_eos_token", true);
    else wg_gguf_set_i32s(g, "tokenizer.wager.after", &behind, 1);
}

static wg_status read_all(model *m, wg_text file, const wg_hf_ids *ids)
{
    WG_TRY(read_model(m, file.s, file.n));
    const bool has_first = m->first >= 0;
    WG_TRY(add_tokens(m));
    WG_TRY(find_special(m, ids));
    m->adds_first = m->first >= 0 && (m->added && m->added->add_bos >= 0 ? m->added->add_bos : has_first);
    return check(m);
}

wg_status wg_sentencepiece_tokenizer(wg_gguf_writer *g, const char *name, wg_text file, const wg_hf_added *added,
                                     const wg_hf_ids *ids, int vocab, wg_error *err)
{
    const size_t n = (size_t)vocab + WG_HF_BEYOND;
    model m = { .path = name,
                .rows = vocab,
                .n = (int)n,
                .kind = UNIGRAM,
                .unknown = 0,
                .first = 1,
                .last = 2,
                .eos = -1,
                .prefix = true,
                .squeeze = true,
                .escape = true,
                .added = added,
                .err = err,
                .text = wg_calloc(n, sizeof *m.text),
                .score = wg_calloc(n, sizeof *m.score),
                .type = wg_calloc(n, sizeof *m.type),
                .flags = wg_calloc(n, sizeof *m.flags),
                .pads = wg_alloc(n, PAD_TEXT) };
    const bool ok = m.text && m.score && m.type && m.flags && m.pads;
    const wg_status s = ok ? read_all(&m, file, ids) : wg_nomem(err, n * sizeof *m.text, "a vocabulary");
    if (s == WG_OK) {
        name_unused(&m);
        write(&m, g);
    }
    wg_free(m.text);
    wg_free(m.score);
    wg_free(m.type);
    wg_free(m.flags);
    wg_free(m.pads);
    return s;
}
