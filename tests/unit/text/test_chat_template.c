/* SPDX-License-Identifier: MIT
 * The template of a weights file: its tokens are those of the same template written by hand; user text never becomes a control
 * token; later turns continue the tokens of the first, or are refused. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "core/text/chat_template.h"
#include "tests/unit/text/tiny.h"

static tiny file;
static wg_weights *w;
static wg_tokenizer *t;
static wg_error err;

static const char *const controls[] = { "<|im_start|>", "<|im_end|>", NULL };

#define IM "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
#define CHATML                                                                                                                 \
    "{{ bos_token }}{% for m in messages %}" IM "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

/* Adds a key behind the others; tiny's head counts them at byte 16. */
static void add_key(const char *key, const char *text)
{
    uint64_t n;
    memcpy(&n, file.b + 16, sizeof n);
    n++;
    memcpy(file.b + 16, &n, sizeof n);
    tiny_text(&file, key, strlen(key));
    tiny_u32(&file, GGUF_STRING);
    tiny_text(&file, text, strlen(text));
}

static void opened(bool bpe, const char *text)
{
    file = (tiny){ .controls = controls };
    (bpe ? tiny_bpe : tiny_spm)(&file);
    if (text) add_key("tokenizer.chat_template", text);
    add_key("tokenizer.chat_template.tool_use", "used");
    cr_assert_eq(wg_weights_open_memory(&w, "tiny", file.b, file.n, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_tokenizer_open(&t, w, &err), WG_OK, "%s", err.text);
}

static void closed(void)
{
    wg_tokenizer_close(t);
    wg_weights_close(w);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

static wg_chat own(const char *system) { return (wg_chat){ .family = WG_CHAT_MODEL, .system = system, .model = w }; }

/* Qwen's way with roles: others than these are passed over, and so is a system text that is not the first message. */
#define QWEN                                                                                                                   \
    "{% for m in messages %}{% if m.role == 'user' or m.role == 'assistant' or (m.role == 'system' and loop.first) %}" IM      \
    "{% endif %}{% endfor %}"

static const wg_text turn[3] = { { "hello <|im_end|> world", 22 }, { "two", 3 }, { "three</s>", 9 } };

Test(chat_template, has_the_tokens_of_chatml)
{
    for (int i = 0; i < 4; i++) {
        const wg_text question[2] = { turn[0], turn[2] };
        int32_t *a, *b;
        size_t na, nb, ca, cb;
        opened(i % 2, CHATML);
        const wg_chat chat = own(i / 2 ? "Be <|im_start|>" : ""), same = { .family = WG_CHAT_CHATML, .system = chat.system };
        for (int n = 1; n <= 3; n += 2) {
            cr_assert_eq(wg_chat_encode(t, &chat, turn, n, &a, &na, &err), WG_OK, "%s", err.text);
            cr_assert_eq(wg_chat_encode(t, &same, turn, n, &b, &nb, &err), WG_OK, "%s", err.text);
            cr_assert(na == nb && memcmp(a, b, na * sizeof *a) == 0, "%zu tokens, expected %zu", na, nb);
            cr_assert_leq(nb, 2 + wg_chat_bytes(&chat) + 60);
            wg_free(a);
            wg_free(b);
        }
        cr_assert_eq(wg_chat_encode_next(t, &chat, question, 2, &a, &na, &ca, &err), WG_OK, "%s", err.text);
        cr_assert_eq(wg_chat_encode_next(t, &same, question, 2, &b, &nb, &cb, &err), WG_OK, "%s", err.text);
        cr_assert(na == nb && ca == cb && ca == 1 && memcmp(a, b, na * sizeof *a) == 0);
        wg_free(a);
        wg_free(b);
        closed();
    }
}

/* A role that is no well-known one, and text that the template puts together with its own, spell no control tokens. */
Test(chat_template, the_data_writes_text)
{
    static const struct {
        const char *text;
        int controls;
    } row[] = {
        { "{{ '<|im_end|>' }}", 1 },
        { "<|im_end|>{{ bos_token }}", 2 },
        { "{{ messages[0].content }}", 0 },
        { "{{ '<|' ~ messages[0].content ~ '|>' }}", 0 },
        { "{{ '<|' ~ messages[0].name|lower ~ '_end|>' }}", 0 },
        { "{{ '<|im_' ~ messages[1].role }}{{ messages[1].content }}", 0 },
        { "{{ messages[2].content }}<|im_end|>{{ messages[2].content|upper|lower|trim|replace('x', 'y') }}", 1 },
    };
    opened(true, NULL);
    json_t *data = json_loads("{\"messages\": [{\"role\": \"user\", \"content\": \"im_end\", \"name\": \"IM\"},"
                              "{\"role\": \"end|>\", \"content\": \"<|im_start|>\"},"
                              "{\"role\": \"user\", \"content\": \"<|im_end|>\"}]}",
                              0, NULL);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const wg_text text = { row[i].text, strlen(row[i].text) };
        wg_rendered r;
        int32_t *ids;
        size_t n;
        int found = 0;
        cr_assert_eq(wg_chat_template_render(w, NULL, &text, data, NULL, &r, &err), WG_OK, "%s", err.text);
        cr_assert_eq(wg_chat_template_ids(t, &r, &ids, &n, &err), WG_OK);
        for (size_t k = 0; k < n; k++) found += wg_tokenizer_is_control(t, ids[k]);
        cr_expect_eq(found, row[i].controls, "%s: %d control tokens", row[i].text, found);
        wg_free(ids);
        wg_rendered_free(&r);
    }
    json_decref(data);
    closed();
}

static const char *said(wg_status want, wg_status s)
{
    cr_assert_eq(s, want, "%s: %s", wg_status_name(s), s ? err.text : "");
    return err.text;
}

Test(chat_template, refusals)
{
    int32_t *ids;
    size_t n, end;
    wg_rendered r;
    json_t *data = json_pack("{s:[]}", "messages");
    opened(true, NULL);
    wg_chat chat = own("");
    cr_assert_str_eq(said(WG_EMODEL, wg_chat_check(t, &chat, false, &err)),
                     "tiny: has no chat template (key tokenizer.chat_template); choose one by name: llama-2, llama-3, chatml, "
                     "zephyr or vicuna");
    cr_assert_str_eq(said(WG_EMODEL, wg_chat_template_render(w, "rag", NULL, data, NULL, &r, &err)),
                     "tiny: has no chat template of the name rag; there are: tool_use");
    cr_assert_eq(wg_chat_template_render(w, "tool_use", NULL, data, NULL, &r, &err), WG_OK);
    cr_assert_str_eq(r.text, "used");
    wg_rendered_free(&r);
    cr_assert_str_eq(said(WG_EINVAL, wg_chat_template_render(w, "tool_use", NULL, data, "2026-13-01", &r, &err)),
                     "the date \"2026-13-01\": expected a year, month and day such as 2026-01-31");
    cr_assert_eq(wg_chat_bytes(&chat), 0);
    closed();

    opened(true, "{{ messages[-1].content }}[{{ strftime_now('%a %d %b %Y') }}]"); /* only the last question */
    chat = own("");
    chat.date = "2026-01-31";
    cr_assert_str_eq(
        said(WG_EMODEL, wg_chat_check(t, &chat, true, &err)),
        "tiny: the chat template writes an earlier turn in other words than it had asked for the answer (from byte 0 "
        "on), so a conversation cannot go on from its tokens; use one turn, or a template by name");
    cr_assert_eq(wg_chat_check(t, &chat, false, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_chat_bytes(&chat), 1 + strlen("[Sat 31 Jan 2026]"));
    cr_assert_str_eq(said(WG_EINVAL, wg_chat_encode_next(t, &chat, turn, 1, &ids, &n, &end, &err)),
                     "a next question needs the one before it: 1 questions of a conversation");
    chat.date = NULL;
    cr_assert_str_eq(said(WG_EMODEL, wg_chat_check(t, &chat, false, &err)),
                     "tiny: chat template, line 1, column 43: 'strftime_now' is undefined, and is called");
    closed();
    /* opens an answer with a thought that it leaves out of earlier turns */
    opened(true, "{% for m in messages %}{{ m.content if m.role == 'assistant' else '[' ~ m.content ~ ']' }}{% endfor %}<t>");
    chat = own("");
    cr_assert(strstr(said(WG_EMODEL, wg_chat_check(t, &chat, true, &err)), "(from byte 3 on)"), "%s", err.text);
    closed();
    opened(true, "{{ raise_exception('no questions') }}");
    chat = own("");
    cr_assert_str_eq(said(WG_EMODEL, wg_chat_encode(t, &chat, turn, 1, &ids, &n, &err)),
                     "tiny: chat template, line 1, column 19: the template refuses: no questions");
    json_decref(data);
    closed();
}

/* Text with a space before an answer belongs to what is encoded anew; its end token does not hide behind it. */
Test(chat_template, answers_between_spaces)
{
    const wg_text question[2] = { turn[1], turn[1] };
    int32_t *ids;
    size_t n, end;
    opened(true, "{% for m in messages %}{{ '[' ~ m.content ~ ']' if m.role == 'user' else ' ' ~ m.content ~ ' <|im_end|>' }}"
                 "{% endfor %}");
    const wg_chat chat = own("");
    cr_assert_eq(wg_chat_encode_next(t, &chat, question, 2, &ids, &n, &end, &err), WG_OK, "%s", err.text);
    cr_assert(end == 2 && n > 2 && wg_tokenizer_is_eog(t, ids[1]), "%zu of %zu", end, n);
    wg_free(ids);
    closed();
    opened(true, "{% for m in messages %}{{ m.content ~ '. <|im_end|>' }}{% endfor %}"); /* words before the end token */
    const wg_chat other = own("");
    cr_assert_eq(wg_chat_encode_next(t, &other, question, 2, &ids, &n, &end, &err), WG_OK, "%s", err.text);
    cr_assert_eq(end, 0);
    wg_free(ids);
    closed();
}

Test(chat_template, survives_failing_allocations)
{
    const wg_text question[2] = { turn[0], turn[2] };
    wg_status s = WG_ENOMEM;
    opened(true, CHATML);
    const wg_chat chat = own("x");
    const size_t live = wg_mem_read().live_blocks;
    for (uint64_t nth = 1; s != WG_OK && nth < 200; nth++) {
        int32_t *ids = NULL, *next = NULL;
        size_t n, end;
        wg_mem_fail_at(nth, false);
        s = wg_chat_encode(t, &chat, turn, 1, &ids, &n, &err);
        if (!s) s = wg_chat_encode_next(t, &chat, question, 2, &next, &n, &end, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || s == WG_ENOMEM, "%s", err.text);
        wg_free(ids);
        wg_free(next);
        cr_assert_eq(wg_mem_read().live_blocks, live);
    }
    cr_assert_eq(s, WG_OK);
    closed();
}

/* Renders a conversation; returns its text, or the message of an error. */
static const char *conversation(const char *template, const char *json, wg_status expected)
{
    static char text[600];
    wg_rendered r;
    json_t *data = json_loads(json, 0, NULL);
    opened(true, template);
    err.text[0] = '\0';
    cr_assert_eq(wg_chat_template_conversation(w, data, NULL, &r, &err), expected, "%s: %s", json, err.text);
    snprintf(text, sizeof text, "%s", expected ? err.text : r.text);
    if (!expected) wg_rendered_free(&r);
    json_decref(data);
    closed();
    return text;
}

#define USER "{\"role\": \"user\", \"content\": \"hello\"}"
#define SAYS(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"}"
#define TALK(messages) "{\"messages\": [" messages "]}"

/* A system text of a config that the template passes over is an error, too. */
Test(chat_template, the_system_text_is_heard)
{
    int32_t *ids;
    size_t n;
    wg_chat chat;
    opened(true, "{% for m in messages %}{% if m.role != 'system' %}" IM "{% endif %}{% endfor %}");
    chat = own("kind");
    cr_assert_eq(wg_chat_encode(t, &chat, turn, 1, &ids, &n, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "messages[0]: the model's chat template leaves out this message of the role \"system\""), "%s",
              err.text);
    chat = own(NULL);
    cr_assert_eq(wg_chat_encode(t, &chat, turn, 1, &ids, &n, &err), WG_OK, "%s", err.text);
    wg_free(ids);
    closed();
}

Test(chat_template, every_message_is_heard)
{
    cr_assert_str_eq(conversation(QWEN, TALK(SAYS("system", "kind") ", " USER), WG_OK),
                     "<|im_start|>system\nkind<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n");
    cr_assert_str_eq(conversation(QWEN, TALK(SAYS("developer", "kind") ", " USER), WG_OK),
                     "<|im_start|>system\nkind<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n", "developer is system");
    cr_assert_str_eq(
        conversation(QWEN "{# developer #}", TALK(SAYS("developer", "kind") ", " USER), WG_EINVAL),
        "messages[0]: the model's chat template leaves out this message of the role \"developer\", at this place; use "
        "a role that it knows, such as user");
    cr_assert(strstr(conversation(QWEN, TALK(USER ", " SAYS("developer", "kind")), WG_EINVAL), "messages[1]: the model's"));
    cr_assert(strstr(conversation(QWEN, TALK(USER ", " SAYS("critic", "hello")), WG_EINVAL), "the role \"critic\""),
              "though the same text was heard before");
    cr_assert_str_eq(conversation(QWEN, TALK(USER ", " SAYS("critic", "")), WG_OK), "<|im_start|>user\nhello<|im_end|>\n",
                     "an empty text says nothing");
    cr_assert_str_eq(conversation("{% for m in messages %}{{ (m.content | trim).split('</think>')[-1] }}|{% endfor %}",
                                  TALK(SAYS("assistant", "why</think>so ") ", " USER), WG_OK),
                     "so|hello|", "a part of a message may be left out");
    /* members beside the text */
    static const char *const members[] = { "\"name\": \"Ann\"", "\"reasoning_content\": \"why\"", "\"reasoning\": \"why\"",
                                           "\"tool_calls\": [{\"function\": {\"name\": \"f\"}}]",
                                           "\"tool_calls\": [{\"name\": \"f\"}]" };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char talk[200], says[100];
        snprintf(talk, sizeof talk, TALK(USER ", {\"role\": \"user\", \"content\": \"x\", %s}"), members[i]);
        snprintf(says, sizeof says, "messages[1].%.*s: the model's chat template leaves it out",
                 (int)strcspn(members[i] + 1, "\""), members[i] + 1);
        cr_assert(strstr(conversation(QWEN, talk, WG_EINVAL), says), "%s", talk);
        conversation("{% for m in messages %}{{ m.content }}{{ m.name }}{{ m.reasoning_content }}{{ m.reasoning }}"
                     "{% for c in m.tool_calls %}{{ c.name or c.function.name }}{% endfor %}{% endfor %}",
                     talk, WG_OK);
    }
    cr_assert(
        strstr(conversation("{% for m in messages %}{{ m.content }}{{ m.tool_calls[0].name }}{% endfor %}",
                            TALK("{\"role\": \"user\", \"content\": \"x\", \"tool_calls\": [{\"name\": \"f\"}, {\"name\": "
                                 "\"g\"}]}"),
                            WG_EINVAL),
               "messages[0].tool_calls"),
        "the second call");
    conversation(QWEN, TALK("{\"role\": \"user\", \"content\": \"x\", \"tool_calls\": [], \"tool_call_id\": \"a\"}"), WG_OK);
    cr_assert_str_eq(conversation("{{ messages[0].content | tojson }}", TALK(SAYS("user", "a\\\"b")), WG_OK), "\"a\\\"b\"");
}
