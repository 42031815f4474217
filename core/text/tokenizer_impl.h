/* SPDX-License-Identifier: MIT
 * The struct of a tokenizer, private to core/text. */
#ifndef WG_CORE_TEXT_TOKENIZER_IMPL_H
#define WG_CORE_TEXT_TOKENIZER_IMPL_H

#include "core/text/bpe.h"
#include "core/text/normal.h"
#include "core/text/spm.h"
#include "core/text/tokenizer.h"

typedef enum wg_tokenizer_kind_id { WG_TOKENIZER_SPM, WG_TOKENIZER_BPE, WG_TOKENIZER_UNIGRAM } wg_tokenizer_kind_id;

enum { WG_TEMPLATE_MOST = 8 };

struct wg_tokenizer {
    wg_tokenizer_kind_id kind;
    wg_vocab v;
    wg_spm spm;
    wg_bpe bpe;
    wg_unigram unigram;
    wg_text *words; /* of the normaliser; NULL: none */
    wg_normalizer normalizer;
    int32_t bos, eos, eot, eom;
    bool add_bos;
    int32_t before[WG_TEMPLATE_MOST], after[WG_TEMPLATE_MOST]; /* ids put before and after a text */
    int befores, afters;
    size_t longest; /* most bytes that a token stands for */
};

#endif
