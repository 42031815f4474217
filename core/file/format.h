/* SPDX-License-Identifier: MIT
 * The struct that format readers fill in, private to core/file. Metadata is stored as GGUF encodes it (little-endian values in
 * place), so one set of getters serves every format and copying a key is copying bytes. */
#ifndef WG_CORE_FILE_FORMAT_H
#define WG_CORE_FILE_FORMAT_H

#include "core/file/weights.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights files are little-endian and read in place"
#endif

typedef enum wg_gguf_value {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_VALUES
} wg_gguf_value;

extern const uint8_t wg_gguf_value_size[GGUF_VALUES]; /* 0: string, array */

typedef struct wg_meta {
    const char *key;      /* owned; first member: see wg_names */
    int type, element;    /* wg_gguf_value; element: of an array, else -1 */
    uint64_t count;       /* elements of an array, else 1 */
    const uint8_t *value; /* a scalar's bytes; a string's bytes (behind its length); an array's first element */
    size_t bytes;         /* of the value: of the string, of all elements */
    size_t *start;        /* arrays of strings: (count) offsets of the length fields from `value`; owned */
} wg_meta;

/* Names to indices: open addressing over rows whose first member is the name. */
typedef struct wg_names {
    int32_t *slot;
    size_t mask;
} wg_names;

/* Makes the bytes of tensors that no file holds in this form. The weights own `user` and call close. */
typedef struct wg_maker {
    wg_status (*make)(void *user, const wg_tensor *t, void *dst, wg_error *err);
    void (*close)(void *user);
    void (*ahead)(void *user, const wg_tensor *t); /* wg_weights_ahead of what it is made of; NULL: of no file */
    void *user;
    bool random; /* bytes come from the seed */
    uint64_t seed;
} wg_maker;

struct wg_weights {
    char *path;
    char format[32];
    const uint8_t *base; /* the whole file */
    size_t bytes;
    bool mapped; /* base is unmapped at close */
    int n_meta, n_tensors;
    size_t room_meta, room_tensors;
    wg_meta *meta;
    wg_tensor *tensor; /* names are owned */
    wg_names meta_names, tensor_names;
    int n_parts; /* the other files of a model in several: the first one's tensors are all of them */
    wg_weights **part;
    uint8_t *blob;  /* metadata of a format without metadata; NULL otherwise */
    wg_maker maker; /* of a model without a file, or of a folder; make is NULL otherwise */
};

/* Instructions for converting a model in torch's own formats to a folder of safetensors. */
#define WG_SAVE_SAFETENSORS                                                                                                    \
    "save it as safetensors: python3 -c \"from transformers import AutoModelForCausalLM as M; "                                \
    "M.from_pretrained('FOLDER').save_pretrained('OUT')\", copy the tokenizer's files to OUT and give OUT"
/* Tells the system that these bytes of a mapping will be read soon, or not again. */
void wg_pages_ahead(const void *at, size_t bytes);
void wg_pages_release(const void *at, size_t bytes);

/* Append a row and take ownership of `name`, also on failure; NULL: out of memory. */
wg_meta *wg_weights_add_meta(wg_weights *w, char *name);
wg_tensor *wg_weights_add_tensor(wg_weights *w, char *name);

/* Builds both tables of names, or rebuilds them. EFORMAT: a name occurs twice. */
wg_status wg_weights_index(wg_weights *w, wg_error *err);

/* Weights that are described by what was written to `g`, which is closed: a file that never exists. Takes over the maker too.
 * Both also on failure. */
struct wg_gguf_writer;
wg_status wg_weights_open_made(wg_weights **out, const char *name, struct wg_gguf_writer *g, const wg_maker *maker,
                               wg_error *err);

/* Opens a single file, which may be a part of a model in several files. */
wg_status wg_weights_open_file(wg_weights **out, const char *path, wg_error *err);
/* wg_gguf_split_count: split.count, 1 if absent. wg_gguf_join: opens the model of which the file `w` at `path` is a part; *out
 * is w itself if it is whole, else all parts as one. Takes ownership of w, also on failure. */
int64_t wg_gguf_split_count(const wg_weights *w);
wg_status wg_gguf_join(wg_weights **out, wg_weights *w, const char *path, wg_error *err);
const wg_meta *wg_weights_meta(const wg_weights *w, const char *key); /* NULL if absent */

/* The readers. w has path, base and bytes; on failure the caller closes it. */
wg_status wg_gguf_read(wg_weights *w, wg_error *err);
bool wg_llama2c_fits(const uint8_t *base, size_t bytes); /* the size formula holds exactly */
wg_status wg_llama2c_read(wg_weights *w, wg_error *err);

/* Sets tokenizer.ggml.* of a GGUF file from the n bytes of a llama2.c tokenizer.bin of `vocab` tokens; `name` stands for its
 * path. EFORMAT names the token and the byte. */
wg_status wg_llama2c_tokenizer(struct wg_gguf_writer *g, const char *name, const char *bytes, size_t n, int64_t vocab,
                               wg_error *err);

#endif
