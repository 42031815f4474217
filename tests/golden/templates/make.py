#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Renders chat templates with jinja2 as transformers configures it, the judge of core/text/jinja.

    python3 tests/golden/templates/make.py [SHARED]

Writes beside itself
  own.json         own.txt (templates as JSON texts, one a line) with what each prints, or null where jinja2 refuses it
  cases.json       conversations with tools, flags and the generation prompt on and off, in short
  published.txt    for each of the published templates in SHARED/templates and each case: length and SHA-256 of the text in
                   UTF-8, or "refused"; the templates themselves are not copied (only with SHARED)

Date: 2025-07-09 12:00. bos_token is <s>, eos_token is </s>. transformers 5.24.0, jinja2 3.1.6.
"""
import datetime
import glob
import hashlib
import json
import os
import sys

import transformers.utils.chat_template_utils as utils

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class Date(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2025, 7, 9, 12, 0, 0)


utils.datetime = Date

VARIABLES = {
    "a": [3, 1, 2], "s": "Hello World", "d": {"b": 1, "A": 2, "c": {"x": [1, {"y": "z"}]}}, "u": "ärger Ünï 😀 日本", "n": None,
    "f": 1.5, "i": 7, "t": True, "e": "", "el": [], "html": "<a href='x'>&\"</a>", "nl": "l1\nl2\n\nl4\n",
    "words": "  a  b\tc \n d ", "big": 1e22,
    "m": [{"role": "user", "content": "hi", "k": {"z": 2}}, {"role": "assistant", "content": "yo", "k": {"z": 1}},
          {"role": "user", "content": "again"}]}

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather \"now\" <b> in Zürich & elsewhere", "parameters": {
            "type": "object", "required": ["city"], "properties": {
                "city": {"type": "string", "description": "A city's name"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "default": 3}, "tags": {"type": "array", "items": {"type": "string"}},
                "where": {"type": "object", "required": ["lat"],
                          "properties": {"lat": {"type": "number"}, "on": {"type": ["boolean", "null"]}}}}},
        "return": {"type": "string"}}},
    {"type": "function", "function": {"name": "noop", "description": "Nothing",
                                      "parameters": {"type": "object", "properties": {}}}}]


def user(text):
    return {"role": "user", "content": text}


def answer(text, **more):
    return {"role": "assistant", "content": text, **more}


def calls(text, *called):
    return answer(text, tool_calls=[{"id": "call1234%d" % i, "type": "function", "function": {"name": name, "arguments": args}}
                                    for i, (name, args) in enumerate(called)])


SYSTEM = {"role": "system", "content": "You are  brief.\nÄ “quote” 😀 "}
WEATHER = {"city": "Zürich", "days": 2, "f": 1.5, "n": None, "t": True, "l": [1, "a"]}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "call12340", "content": "{\"temp\": 21}"}
CONVERSATIONS = {
    "one": [user("Hello, world!")],
    "system": [SYSTEM, user(" Hi ")],
    "turns": [user("a"), answer("b <think>x</think> y "), user("c\n"), answer("\n\nd"), user("e <|im_end|> </s>")],
    "system_turns": [SYSTEM, user("a"), answer("<think>\nlong\n</think>\n\nanswer"), user("b"), answer("c"), user("d")],
    "answered": [user("a"), answer("b")],
    "tool": [SYSTEM, user("weather?"), calls("", ("get_weather", WEATHER)), RESULT, answer("21 degrees"), user("thanks")],
    "tool_last": [user("weather?"), calls("", ("get_weather", WEATHER)), RESULT],
    "tools_many": [user("x"), calls(None, ("noop", {}), ("get_weather", {"city": "A'b\"c"})), RESULT,
                   dict(RESULT, tool_call_id="call12341"), user("y")],
    "thinking": [user("q"), answer("r", reasoning_content="because", thinking="because"), user("s"),
                 answer("t", reasoning_content="so", thinking="so")],
    "parts": [user([{"type": "text", "text": "look"}, {"type": "image", "image": "x"}]), answer("seen"),
              user([{"type": "text", "text": "more"}])],
    "developer": [{"role": "developer", "content": "dev"}, user("x")],
    "out_of_order": [answer("b"), user("x")],
    "empty": [],
    "prefix": [user("q"), answer("par", prefix=True)],
}
FLAGS = {
    "plain": {},
    "thinking": {"enable_thinking": True},
    "no_thinking": {"enable_thinking": False},
    "all": {"reasoning_effort": "high", "thinking": True, "documents": [{"title": "T", "text": "doc <x>"}],
            "builtin_tools": ["browser", "python"], "xml_tools": ["a"], "controls": {"length": "long"},
            "custom_instructions": "be kind", "keep_past_thinking": True, "tools_in_user_message": False,
            "date_string": "1 Jan 2025", "add_vision_id": True},
}


def cases():
    """(name, data): every conversation with and without tools and a generation prompt; some of them with flags."""
    for name, messages in CONVERSATIONS.items():
        for tools in (False, True):
            for prompt in (False, True):
                for flags, values in FLAGS.items():
                    if flags == "plain" or name in ("system_turns", "tool", "thinking"):
                        data = {"messages": messages, "tools": TOOLS if tools else None, "documents": None,
                                "add_generation_prompt": prompt, **values}
                        yield "%s%s%s/%s" % (name, "+tools" if tools else "", "+prompt" if prompt else "", flags), data


def render(template, data):
    try:
        return utils._cached_compile_jinja_template(template).render(**data, **TOKENS)
    except Exception:  # what jinja2, Python or the template itself refuses
        return None


def write(name, text):
    with open(os.path.join(HERE, name), "w", newline="\n") as f:
        f.write(text)


def main(shared):
    own = [line.rstrip("\n") for line in open(os.path.join(HERE, "own.txt"), encoding="utf-8", newline="\n")]
    rows = [(json.loads(line), render(json.loads(line), VARIABLES)) for line in own if line]
    lines = ",\n".join(json.dumps([t, out], ensure_ascii=False) for t, out in rows)
    write("own.json", '{"variables": %s,\n"templates": [\n%s\n]}\n' % (json.dumps(VARIABLES, ensure_ascii=False), lines))
    all_cases = list(cases())
    write("cases.json", "[\n%s\n]\n" % ",\n".join(json.dumps([n, d], ensure_ascii=False) for n, d in all_cases))
    if not shared:
        return
    out = []
    for path in sorted(glob.glob(os.path.join(shared, "templates", "*.jinja"))):
        template = open(path, encoding="utf-8", newline="").read()
        out.append("= " + os.path.basename(path))
        for name, data in all_cases:
            text = render(template, data)
            out.append("refused" if text is None else
                       "%d %s" % (len(text.encode()), hashlib.sha256(text.encode()).hexdigest()))
    write("published.txt", "\n".join(out) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
