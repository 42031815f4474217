/* SPDX-License-Identifier: MIT
 * A table of templates, and their expansion: words are collected, a control token flushes them. */
#include "core/text/chat.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/text/chat_template.h"

enum { TEXT_MAX = 256 << 20 };

/* Marks in the texts of a template; all other bytes are words. */
#define BOS "\1"         /* the vocabulary's beginning token */
#define BOS_BY_FILE "\2" /* the beginning token, if the file adds one */
#define EOS "\3"
#define CONTROL(text) "\4" text "\6" /* the control token of this text; there must be one */
#define MAYBE(text) "\5" text "\6"   /* as CONTROL, or words where the vocabulary has no such token */

/* trim: spaces and line ends around a text are not part of it. inside: the system text stands within the first question. */
typedef struct family {
    const char *begin, *system[2], *question[2], *answer[2], *open;
    bool trim, inside;
} family;

#define HEADER(role) CONTROL("<|start_header_id|>") role CONTROL("<|end_header_id|>") "\n\n"
#define EOT CONTROL("<|eot_id|>")
#define IM(role) CONTROL("<|im_start|>") role "\n"
#define IM_END CONTROL("<|im_end|>") "\n"

/* clang-format off */
static const family families[] = {
    [WG_CHAT_LLAMA_2] = { "", { "<<SYS>>\n", "\n<</SYS>>\n\n" }, { BOS "[INST] ", " [/INST]" }, { " ", " " EOS }, "", true,
                          true },
    [WG_CHAT_LLAMA_3] = { BOS, { HEADER("system"), EOT }, { HEADER("user"), EOT }, { HEADER("assistant"), EOT },
                          HEADER("assistant"), true, false },
    [WG_CHAT_CHATML] = { BOS_BY_FILE, { IM("system"), IM_END }, { IM("user"), IM_END }, { IM("assistant"), IM_END },
                         IM("assistant"), false, false },
    [WG_CHAT_ZEPHYR] = { BOS_BY_FILE, { MAYBE("<|system|>") "\n", EOS "\n" }, { MAYBE("<|user|>") "\n", EOS "\n" },
                         { MAYBE("<|assistant|>") "\n", EOS "\n" }, MAYBE("<|assistant|>") "\n", false, false },
    [WG_CHAT_VICUNA] = { BOS_BY_FILE, { "", " " }, { "USER: ", " " }, { "ASSISTANT: ", EOS }, "ASSISTANT:", false, false },
};
/* clang-format on */

const char *const wg_chat_names[] = {
    [WG_CHAT_NONE] = "none",     [WG_CHAT_LLAMA_2] = "llama-2", [WG_CHAT_LLAMA_3] = "llama-3", [WG_CHAT_CHATML] = "chatml",
    [WG_CHAT_ZEPHYR] = "zephyr", [WG_CHAT_VICUNA] = "vicuna",   [WG_CHAT_MODEL] = "model",     NULL,
};

/* ---- words and control tokens ------------------------------------------------------------------------------------ */

typedef struct writer {
    const wg_tokenizer *t;
    const char *name; /* of the family */
    char *words;      /* not encoded yet */
    size_t n, cap;
    wg_merger m;
    wg_ids ids;
} writer;

static wg_status add_words(writer *w, const char *s, size_t n, wg_error *err)
{
    if (n > TEXT_MAX - w->n)
        return wg_fail(err, WG_EINVAL, "a conversation of more than %d bytes cannot be encoded; shorten its texts", TEXT_MAX);
    WG_TRY(wg_grow((void **)&w->words, &w->cap, w->n + n, 1, "a conversation", err));
    if (n) memcpy(w->words + w->n, s, n);
    w->n += n;
    return WG_OK;
}

/* Words that follow a control token begin a stretch of text. */
static wg_status flush(writer *w, wg_error *err)
{
    const size_t n = w->n;
    w->n = 0;
    return n ? wg_tokenizer_encode_part(w->t, w->words, n, true, &w->m, &w->ids, err) : WG_OK;
}

static wg_status add_token(writer *w, int32_t id, const char *what, wg_error *err)
{
    if (id < 0)
        return wg_fail(err, WG_EMODEL,
                       "the chat template %s needs the token %s, which the vocabulary does not have; choose the template that "
                       "the model was trained with, or none",
                       w->name, what);
    WG_TRY(flush(w, err));
    return wg_ids_push(&w->ids, id, err);
}

/* The token of this text as found in raw text with control tokens; -1: none. */
static wg_status find_token(const wg_tokenizer *t, const char *s, size_t n, int32_t *id, wg_error *err)
{
    int32_t *ids;
    size_t n_ids;
    WG_TRY(wg_tokenizer_encode(t, s, n, false, true, &ids, &n_ids, err));
    const wg_text piece = n_ids == 1 ? wg_tokenizer_piece(t, ids[0]) : (wg_text){ "", 0 };
    *id = piece.n == n && memcmp(piece.s, s, n) == 0 ? ids[0] : -1;
    wg_free(ids);
    return WG_OK;
}

/* CONTROL or MAYBE, without its first byte. */
static wg_status add_named(writer *w, const char *s, size_t n, bool needed, wg_error *err)
{
    char text[32];
    int32_t id;
    wg_assert(n < sizeof text);
    memcpy(text, s, n);
    text[n] = '\0';
    WG_TRY(find_token(w->t, s, n, &id, err));
    return id < 0 && !needed ? add_words(w, s, n, err) : add_token(w, id, text, err);
}

static wg_status add_template(writer *w, const char *s, wg_error *err)
{
    while (*s) {
        const size_t n = strcspn(s, "\1\2\3\4\5");
        WG_TRY(add_words(w, s, n, err));
        s += n;
        const char mark = *s;
        s += mark != '\0';
        if (mark == *BOS) WG_TRY(add_token(w, wg_tokenizer_bos(w->t), "of the beginning (BOS)", err));
        if (mark == *BOS_BY_FILE && wg_tokenizer_add_bos(w->t)) WG_TRY(add_token(w, wg_tokenizer_bos(w->t), "BOS", err));
        if (mark == *EOS) WG_TRY(add_token(w, wg_tokenizer_eos(w->t), "of the end (EOS)", err));
        if (mark != *CONTROL("") && mark != *MAYBE("")) continue;
        const size_t name = strcspn(s, "\6");
        WG_TRY(add_named(w, s, name, mark == *CONTROL(""), err));
        s += name + 1;
    }
    return WG_OK;
}

static wg_status open_writer(writer *w, const wg_tokenizer *t, int family, wg_error *err)
{
    *w = (writer){ .t = t, .name = wg_chat_names[family], .ids.capacity = 64 };
    w->ids.v = wg_alloc(w->ids.capacity, sizeof *w->ids.v);
    return w->ids.v ? WG_OK : wg_nomem(err, w->ids.capacity * sizeof *w->ids.v, "token ids");
}

/* Passes the ids to the caller, unless s is an error. */
static wg_status close_writer(writer *w, wg_status s, int32_t **ids, size_t *n_ids)
{
    wg_merger_free(&w->m);
    wg_free(w->words);
    if (s) wg_free(w->ids.v);
    else *ids = w->ids.v, *n_ids = w->ids.n;
    return s;
}

/* ---- conversations ----------------------------------------------------------------------------------------------- */

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static wg_text trimmed(wg_text x, bool left, bool right)
{
    while (left && x.n && is_space(*x.s)) x.s++, x.n--;
    while (right && x.n && is_space(x.s[x.n - 1])) x.n--;
    return x;
}

static wg_status add_between(writer *w, const char *const around[2], wg_text x, wg_error *err)
{
    WG_TRY(add_template(w, around[0], err));
    WG_TRY(add_words(w, x.s, x.n, err));
    return add_template(w, around[1], err);
}

/* Adds the first question when it contains the system text: both are one text, so that the characters between them stay. */
static wg_status add_first(writer *w, const family *f, const char *system, wg_text x, wg_error *err)
{
    static const char *const bare[2] = { "", "" };
    WG_TRY(add_template(w, f->question[0], err));
    WG_TRY(add_between(w, f->system, (wg_text){ system, strlen(system) }, err));
    WG_TRY(add_between(w, bare, trimmed(x, false, f->trim), err));
    return add_template(w, f->question[1], err);
}

static wg_status add_all(writer *w, const family *f, const char *system, const wg_text *turn, int n, wg_error *err)
{
    const wg_text said = { system, system ? strlen(system) : 0 };
    const bool spoken = said.n > 0;
    WG_TRY(add_template(w, f->begin, err));
    if (spoken && !f->inside) WG_TRY(add_between(w, f->system, trimmed(said, f->trim, f->trim), err));
    for (int i = 0; i < n; i++) {
        const wg_text x = trimmed(turn[i], f->trim, f->trim);
        WG_TRY(i == 0 && spoken && f->inside ? add_first(w, f, system, turn[i], err)
                                             : add_between(w, i % 2 ? f->answer : f->question, x, err));
    }
    WG_TRY(add_template(w, f->open, err));
    return flush(w, err);
}

wg_status wg_chat_encode(const wg_tokenizer *t, const wg_chat *chat, const wg_text *turn, int n, int32_t **ids, size_t *n_ids,
                         wg_error *err)
{
    if (n % 2 == 0 || n < 1 || (chat->family == WG_CHAT_NONE && n > 1))
        return wg_fail(err, WG_EINVAL, "a conversation of %d texts with the chat template %s: expected %s", n,
                       wg_chat_names[chat->family], chat->family ? "an odd number, questions and answers in turn" : "one");
    if (chat->family == WG_CHAT_NONE) return wg_tokenizer_encode(t, turn->s, turn->n, true, false, ids, n_ids, err);
    if (chat->family == WG_CHAT_MODEL) return wg_chat_template_encode(t, chat, turn, n, ids, n_ids, err);
    writer w;
    wg_status s = open_writer(&w, t, chat->family, err);
    if (!s) s = add_all(&w, &families[chat->family], chat->system, turn, n, err);
    return close_writer(&w, s, ids, n_ids);
}

/* Each family has one control token at the end of an answer, so the tokens after it encode the next question. */
static wg_status add_next(writer *w, const family *f, wg_text question, size_t *closed, wg_error *err)
{
    WG_TRY(add_template(w, f->answer[1], err));
    *closed = w->ids.n;
    WG_TRY(add_between(w, f->question, trimmed(question, f->trim, f->trim), err));
    WG_TRY(add_template(w, f->open, err));
    return flush(w, err);
}

wg_status wg_chat_encode_next(const wg_tokenizer *t, const wg_chat *chat, const wg_text *asked, int n, int32_t **ids,
                              size_t *n_ids, size_t *closed, wg_error *err)
{
    const wg_text question = asked[n - 1];
    if (chat->family == WG_CHAT_MODEL) return wg_chat_template_next(t, chat, asked, n, ids, n_ids, closed, err);
    writer w;
    wg_status s = open_writer(&w, t, chat->family, err);
    *closed = 0;
    if (!s && chat->family != WG_CHAT_NONE) s = add_next(&w, &families[chat->family], question, closed, err);
    else if (!s && !(s = add_words(&w, question.s, question.n, err)))
        s = wg_tokenizer_encode_part(t, question.s, question.n, false, &w.m, &w.ids, err);
    return close_writer(&w, s, ids, n_ids);
}

wg_status wg_chat_check(const wg_tokenizer *t, const wg_chat *chat, bool turns, wg_error *err)
{
    if (chat->family == WG_CHAT_MODEL) return wg_chat_template_check(t, chat, turns, err);
    const wg_text turn[3] = { { "", 0 }, { "", 0 }, { "", 0 } };
    int32_t *ids;
    size_t n;
    if (chat->family == WG_CHAT_NONE) return WG_OK;
    WG_TRY(wg_chat_encode(t, chat, turn, 3, &ids, &n, err)); /* an answer too: a conversation may go on */
    wg_free(ids);
    return WG_OK;
}

size_t wg_chat_bytes(const wg_chat *chat)
{
    const family *f = &families[chat->family];
    if (chat->family == WG_CHAT_NONE) return 0;
    if (chat->family == WG_CHAT_MODEL) return wg_chat_template_bytes(chat);
    const char *const all[] = { f->begin, f->system[0], f->system[1], f->answer[1], f->question[0], f->question[1], f->open };
    size_t n = chat->system ? strlen(chat->system) : 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) n += strlen(all[i]);
    return n;
}
