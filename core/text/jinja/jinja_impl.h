/* SPDX-License-Identifier: MIT
 * Types and functions shared by the files of the interpreter: values, syntax tree, and the state of a parse or a rendering.
 * Private to this folder.
 *
 * Failure is sticky: the first one is kept in wgj.failed with its message, and every function returns an empty value at once
 * from then on. Memory comes from the arena of the state and is freed as a whole. Lists, dictionaries and texts never change
 * after they are made (the sandbox of transformers refuses it too); namespaces and scopes do. */
#ifndef WG_CORE_TEXT_JINJA_JINJA_IMPL_H
#define WG_CORE_TEXT_JINJA_JINJA_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/text/jinja/jinja.h"

enum {
    WGJ_SOURCE = 1 << 20,    /* bytes of a template */
    WGJ_MEMORY = 256 << 20,  /* bytes of a rendering */
    WGJ_OUTPUT = 64 << 20,   /* bytes of a text */
    WGJ_WORK = 50 << 20,     /* evaluated nodes, handled elements, and 64 bytes of text each */
    WGJ_DEPTH = 600,         /* nested expressions, statements, calls and values */
    WGJ_SYNTAX = 100,        /* nested brackets and blocks of a template */
    WGJ_RANGE_MOST = 100000, /* elements of range(), as in Jinja's sandbox */
    WGJ_ARGS = 8             /* arguments of a function, method, filter or test */
};

/* ---- values */

typedef struct wgj_text {
    const char *s;             /* UTF-8 where the input is */
    const unsigned char *mark; /* (n) 1: a byte of the data; NULL: all of the template */
    size_t n;
    bool safe; /* Python's Markup: `+` escapes the other operand */
} wgj_text;

typedef enum wgj_kind {
    WGJ_ABSENT, /* an argument that was not given */
    WGJ_UNDEFINED,
    WGJ_NONE,
    WGJ_BOOL,
    WGJ_INT,
    WGJ_FLOAT,
    WGJ_TEXT,
    WGJ_LIST,
    WGJ_TUPLE,
    WGJ_RANGE,    /* of range() */
    WGJ_VIEW,     /* d.items(), d.keys(), d.values() */
    WGJ_ITERATOR, /* the result of map, select, ...: read once */
    WGJ_DICT,
    WGJ_NAMESPACE,
    WGJ_LOOP,
    WGJ_MACRO,
    WGJ_METHOD,
    WGJ_FUNCTION
} wgj_kind;

typedef struct wgj_list wgj_list;
typedef struct wgj_dict wgj_dict;
typedef struct wgj_loop wgj_loop;
typedef struct wgj_macro wgj_macro;
typedef struct wgj_method wgj_method;
typedef struct wgj_value {
    wgj_kind kind;
    union {
        bool b;
        int64_t i;
        double f;
        const wgj_text *text;
        wgj_list *list; /* LIST, TUPLE, RANGE, VIEW, ITERATOR */
        wgj_dict *dict; /* DICT, NAMESPACE */
        wgj_loop *loop;
        const wgj_macro *macro;
        const wgj_method *method;
        const char *function; /* its name */
        const char *why;      /* UNDEFINED: what is undefined, for messages */
    } as;
} wgj_value;

struct wgj_list {
    wgj_value *v; /* (n) */
    size_t n;
};
struct wgj_dict {
    wgj_value *key, *v; /* (n) in order of insertion; room for key_cap and cap */
    size_t n, key_cap, cap;
};
struct wgj_method {
    wgj_value self;
    const wgj_text *name;
};

/* ---- syntax tree */

typedef enum wgj_node_kind {
    WGJ_N_CONST,   /* value */
    WGJ_N_NAME,    /* name */
    WGJ_N_LIST,    /* kids */
    WGJ_N_TUPLE,   /* kids */
    WGJ_N_DICT,    /* kids: key, value, key, value ... */
    WGJ_N_ATTR,    /* a . name */
    WGJ_N_ITEM,    /* a [b] */
    WGJ_N_SLICE,   /* a : b : c (each may be NULL), only as b of ITEM */
    WGJ_N_CALL,    /* a (kids) */
    WGJ_N_KEYWORD, /* name = a, among the kids of a call */
    WGJ_N_FILTER,  /* a | name (kids); a NULL: the body of a block */
    WGJ_N_TEST,    /* a is name (kids) */
    WGJ_N_NOT,
    WGJ_N_NEGATE,
    WGJ_N_PLUS,
    WGJ_N_AND,
    WGJ_N_OR,
    WGJ_N_BINARY,  /* a op b */
    WGJ_N_COMPARE, /* a, then kids: COMPARE nodes with op and a */
    WGJ_N_CONCAT,  /* kids */
    WGJ_N_CHOICE,  /* a if b else c; c may be NULL */

    WGJ_N_DATA,     /* value: a text */
    WGJ_N_PRINT,    /* a */
    WGJ_N_IF,       /* kids: BRANCH */
    WGJ_N_BRANCH,   /* a (NULL: else), kids */
    WGJ_N_FOR,      /* a: target, b: iterable, c: condition or NULL, kids, other; op: recursive */
    WGJ_N_SET,      /* a: target, b: value */
    WGJ_N_SETBLOCK, /* a: target, b: filters or NULL, kids */
    WGJ_N_MACRO,    /* name, other: parameters (KEYWORD, a: default or NULL), kids */
    WGJ_N_CALLER,   /* a: call, other: parameters, kids */
    WGJ_N_FILTERED, /* b: filters, kids */
    WGJ_N_WITH,     /* other: KEYWORD a, kids */
    WGJ_N_BODY,     /* kids: a generation block */
    WGJ_N_BREAK,
    WGJ_N_CONTINUE
} wgj_node_kind;

typedef struct wgj_node wgj_node;
struct wgj_node {
    wgj_node_kind kind;
    int op;      /* of BINARY and COMPARE: a token's op */
    uint32_t at; /* offset in the source */
    const wgj_text *name;
    wgj_value value;
    wgj_node *a, *b, *c, *kids, *other, *next;
};

typedef enum wgj_token_kind {
    WGJ_T_END,
    WGJ_T_DATA,
    WGJ_T_PRINT,     /* {{ */
    WGJ_T_PRINT_END, /* }} */
    WGJ_T_BLOCK,     /* {% */
    WGJ_T_BLOCK_END,
    WGJ_T_NAME,
    WGJ_T_STRING,
    WGJ_T_INT,
    WGJ_T_FLOAT,
    WGJ_T_OP
} wgj_token_kind;

/* Operators: their characters. "//", "**", "==", "!=", "<=", ">=" by WGJ_OP2. */
#define WGJ_OP2(a, b) ((a) << 8 | (b))
enum { WGJ_OP_IN = 1, WGJ_OP_NOT_IN = 2 }; /* of COMPARE nodes */

typedef struct wgj_token {
    wgj_token_kind kind;
    int op;
    uint32_t at;
    const wgj_text *text; /* of data, names (as written) and strings (unescaped) */
    int64_t i;
    double f;
} wgj_token;

/* ---- state */

typedef struct wgj_block wgj_block;
typedef struct wgj_arena {
    wgj_block *first;
    size_t bytes;
} wgj_arena;

typedef struct wgj_buffer {
    char *s;
    unsigned char *mark; /* NULL until a marked byte is put */
    size_t n, cap;
} wgj_buffer; /* zero-initialise */

typedef struct wgj_scope {
    struct wgj_scope *outer;
    wgj_dict of; /* variables by their names */
} wgj_scope;

typedef struct wgj {
    wgj_arena arena;
    const char *name;   /* of the template, for messages */
    const char *source; /* line ends normalised */
    size_t n;
    wg_error *err;
    wg_status failed;
    uint32_t at; /* offset of the node that is evaluated */
    int depth;
    uint64_t work;
    wgj_token *token; /* the next one of a parse */
    size_t tokens, room;
    int loops; /* loops around the statement that is parsed */
    wgj_scope *scope;
    wgj_buffer *out;
    const struct tm *now;
    /* placeholders returned after a failure (no_list also stands for an empty list) */
    wgj_list no_list;
    wgj_dict no_dict;
    wgj_node no_node;
    wgj_token no_token;
} wgj;

struct wg_jinja {
    wgj j; /* its arena holds the tree, the name and the source */
    wgj_node *body;
};

/* limits.c */
void *wgj_take(wgj *j, size_t n, size_t size); /* zeroed; NULL after a failure */
void wgj_free(wgj *j);
/* Room for `need` elements in *p, which has *cap; false after a failure. The new ones are zeroed. */
bool wgj_grow(wgj *j, void **p, size_t n, size_t need, size_t *cap, size_t size);
bool wgj_spend(wgj *j, size_t work); /* false after a failure */
bool wgj_enter(wgj *j);              /* one level deeper; false after a failure. wgj_leave in any case */
void wgj_leave(wgj *j);
void wgj_fail(wgj *j, wg_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4))); /* at j->at */

/* lexer.c: all tokens of the source, into j->token. */
void wgj_lex(wgj *j);

/* parse_expr.c */
bool wgj_is_op(const wgj *j, int op);
bool wgj_is_name(const wgj *j, const char *name);
bool wgj_skip_op(wgj *j, int op);
bool wgj_skip_name(wgj *j, const char *name);
void wgj_expect_op(wgj *j, int op);
void wgj_expected(wgj *j, const char *what);                     /* fails with the token found */
const wgj_text *wgj_expect_name(wgj *j);                         /* NULL after a failure */
wgj_node *wgj_node_new(wgj *j, wgj_node_kind kind, uint32_t at); /* never NULL: after a failure j->no_node */
bool wgj_text_is(const wgj_text *t, const char *s);
wgj_node *wgj_parse_expr(wgj *j, bool choice);
wgj_node *wgj_parse_tuple(wgj *j, bool choice, const char *end);
wgj_node *wgj_parse_filters(wgj *j, wgj_node *subject);
wgj_node *wgj_parse_target(wgj *j, const char *end, bool with_namespace);

/* A text for "%.*s" in a message, cut to fit. */
#define WGJ_SHOWN(t) (t)->n < 60 ? (int)(t)->n : 60, (t)->s

/* text.c */
bool wgj_is_space(uint32_t cp); /* Python's str.isspace */
bool wgj_put(wgj *j, wgj_buffer *b, const char *s, const unsigned char *mark, size_t n);
bool wgj_puts(wgj *j, wgj_buffer *b, const char *s);
bool wgj_put_text(wgj *j, wgj_buffer *b, const wgj_text *t);
wgj_value wgj_finish(wgj *j, const wgj_buffer *b); /* the text of a buffer */
wgj_value wgj_literal(wgj *j, const char *s);
wgj_value wgj_sub(wgj *j, const wgj_text *t, size_t from, size_t to); /* bytes from .. to - 1 */
size_t wgj_chars(const wgj_text *t);
size_t wgj_offset(const wgj_text *t, size_t chars);                               /* bytes of so many characters */
size_t wgj_find(wgj *j, const wgj_text *t, size_t from, const wgj_text *what);    /* SIZE_MAX: not found */
wgj_value wgj_strip(wgj *j, const wgj_text *t, const wgj_text *chars, int sides); /* 1 left, 2 right; chars NULL: spaces */
wgj_value wgj_replace(wgj *j, const wgj_text *t, const wgj_text *from, const wgj_text *to, int64_t count);
wgj_value wgj_escape(wgj *j, const wgj_text *t);
wgj_value wgj_safe(wgj *j, wgj_value text); /* the same text, as Markup */
wgj_value wgj_join(wgj *j, const wgj_text *between, const wgj_list *l);
int wgj_text_order(const wgj_text *a, const wgj_text *b);

/* letter_case.c */
typedef enum wgj_case { WGJ_UPPER, WGJ_LOWER, WGJ_CAPITALIZE, WGJ_TITLE_METHOD, WGJ_TITLE_FILTER } wgj_case;
wgj_value wgj_recase(wgj *j, const wgj_text *t, wgj_case how);

/* value.c */
extern const wgj_text wgj_empty;
wgj_value wgj_undefined(wgj *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
wgj_value wgj_int(int64_t i);
wgj_value wgj_float(double f);
wgj_value wgj_bool(bool b);
wgj_value wgj_list_new(wgj *j, wgj_kind kind, size_t n); /* as.list has room for n; failed: n is 0 */
wgj_value wgj_pair(wgj *j, wgj_value a, wgj_value b);
wgj_value wgj_dict_new(wgj *j, wgj_kind kind);
bool wgj_dict_get(wgj *j, const wgj_dict *d, wgj_value key, wgj_value *out);
void wgj_dict_set(wgj *j, wgj_dict *d, wgj_value key, wgj_value v);
void wgj_dict_push(wgj *j, wgj_dict *d, wgj_value key, wgj_value v); /* of a key that it does not have */
bool wgj_truth(wgj *j, wgj_value v);
bool wgj_equal(wgj *j, wgj_value a, wgj_value b);
int wgj_order(wgj *j, wgj_value a, wgj_value b); /* <0, 0, >0; fails where Python has no order */
const char *wgj_type(wgj_value v);               /* Python's name of the type, for messages */
bool wgj_is_number(wgj_value v);
int64_t wgj_whole(wgj_value v);              /* of BOOL, INT */
double wgj_double(wgj_value v);              /* of BOOL, INT, FLOAT */
wgj_list *wgj_elements(wgj *j, wgj_value v); /* what a loop over v sees; never NULL; fails where v is not iterable */
bool wgj_iterable(wgj_value v);
bool wgj_contains(wgj *j, wgj_value whole, wgj_value part);
wgj_value wgj_from_json(wgj *j, const json_t *v, bool data);

/* print.c */
void wgj_print(wgj *j, wgj_buffer *b, wgj_value v); /* Python's str() */
const wgj_text *wgj_str(wgj *j, wgj_value v);       /* the same as a text; never NULL */

/* tojson.c */
typedef struct wgj_call wgj_call;
wgj_value wgj_tojson(wgj *j, const wgj_call *c);

/* Arguments of a call of a table's function. `params` is "value,width,first=": the subject first, "=" behind those that may
 * be left out. */
typedef struct wgj_args {
    wgj_value v[WGJ_ARGS];
    const wgj_text *keyword[WGJ_ARGS]; /* NULL: positional */
    int n;
} wgj_args;
struct wgj_call {
    const char *name;
    wgj_value arg[WGJ_ARGS + 1]; /* by the order of the parameters; ABSENT where not given */
    const wgj_args *given;       /* all but the subject; params "*": not bound to parameters */
};
typedef struct wgj_entry {
    const char *name, *params;
    wgj_value (*run)(wgj *j, const wgj_call *c);
} wgj_entry; /* a row; tables end with a NULL name */
const wgj_entry *wgj_entry_find(const wgj_entry *table, const wgj_text *name);
bool wgj_bind(wgj *j, const wgj_entry *e, const wgj_value *subject, const wgj_args *args, wgj_call *out);
const wgj_text *wgj_arg_text(wgj *j, const wgj_call *c, int i, const char *what); /* never NULL; fails when it is no text */
int64_t wgj_arg_int(wgj *j, const wgj_call *c, int i, int64_t fallback);
bool wgj_arg_true(wgj *j, const wgj_call *c, int i, bool fallback);

/* eval.c */
wgj_value wgj_eval(wgj *j, const wgj_node *n);
wgj_value wgj_attribute(wgj *j, wgj_value v, const wgj_text *name);
wgj_value wgj_item(wgj *j, wgj_value v, wgj_value key);
void wgj_eval_args(wgj *j, const wgj_node *kids, wgj_args *out);
wgj_value wgj_lookup(wgj *j, const wgj_text *name);
void wgj_assign(wgj *j, const wgj_text *name, wgj_value v);
wgj_value wgj_apply_filters(wgj *j, const wgj_node *filters, wgj_value v);

/* arithmetic.c */
wgj_value wgj_binary(wgj *j, int op, wgj_value a, wgj_value b);
wgj_value wgj_negate(wgj *j, wgj_value v);
wgj_value wgj_format(wgj *j, const wgj_text *format, const wgj_list *args); /* Python's % */
wgj_value wgj_slice(wgj *j, wgj_value v, wgj_value from, wgj_value to, wgj_value step);

/* exec.c */
wgj_value wgj_call_macro(wgj *j, const wgj_macro *m, const wgj_args *args);
wgj_value wgj_call_loop(wgj *j, wgj_loop *l, const wgj_args *args);
wgj_value wgj_loop_attribute(wgj *j, wgj_loop *l, const wgj_text *name);
wgj_value wgj_loop_method(wgj *j, wgj_loop *l, const wgj_text *name, const wgj_args *args);

/* methods.c, filters.c, checks.c, functions.c */
bool wgj_has_method(wgj_value v, const wgj_text *name);
bool wgj_is_unsafe(wgj_value v, const wgj_text *name); /* a method that the sandbox refuses */
wgj_value wgj_call_method(wgj *j, const wgj_method *m, const wgj_args *args);
wgj_value wgj_filter(wgj *j, const wgj_text *name, wgj_value v, const wgj_args *args);
bool wgj_test(wgj *j, const wgj_text *name, wgj_value v, const wgj_args *args);
bool wgj_filter_known(const wgj_text *name);
wgj_value wgj_function(wgj *j, const wgj_text *name); /* a global function by name, or ABSENT */
wgj_value wgj_call_function(wgj *j, const char *name, const wgj_args *args);

#endif
