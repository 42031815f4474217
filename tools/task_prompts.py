#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Task-like prompts for conversations that a target writes (docs/distillation.md#conversations): summaries with quotes,
questions on a passage or on several documents, translation, arithmetic, code edits, programs and general tasks, put together
from templates. No prompt of a benchmark is among them. Passages come from text files given here, whose paragraphs are divided
by empty lines.

usage: task_prompts.py N SEED TEXT... >tasks.jsonl
writes N lines {"category": ..., "prompt": ...}, a function of the arguments"""
import json
import random
import re
import sys

NAMES = ("Anna Ben Carla David Elif Farid Grace Hugo Ines Jonas Kira Liam Mona Noor Omar Paula Quinn Rosa Sven Tara Uma Victor "
         "Wanda Yusuf Zoe").split()
THINGS = "apples pencils books eggs coins tickets bottles cookies marbles flowers stamps oranges shirts chairs".split()
PLACES = ["a market", "a school", "a library", "a bakery", "a farm", "a harbour", "a museum", "a station", "a toy shop"]
TOPICS = """volcanoes; the water cycle; photosynthesis; the French Revolution; electric cars; bees; the history of chess;
black holes; vaccines; recycling; the Roman Empire; bread; remote work; inflation; jazz; solar power; time management;
public speaking; machine learning; the immune system; coffee; migration of birds; bridges; glaciers; the printing press; sleep;
the stock market; ocean tides; small gardens; learning a language; healthy breakfasts; the moon; earthquakes; wind energy;
 ancient Egypt; basketball; online privacy; climate and weather; a first marathon; interviews for a job;
a team that misses its deadlines; writing clear e-mails; a budget for students; camping with children; a vegetarian dinner;
the human heart; databases; elections; museums; trains; plastics; the Silk Road; dreams; poetry; maps; clocks; spices;
forests; deserts; whales""".replace("\n", " ").split("; ")
ROLES = ["a patient teacher", "a travel guide", "a detective", "a cook", "a sports coach", "a doctor", "a pirate", "a gardener",
         "a software engineer", "an astronaut", "a historian", "a librarian", "a shop owner", "a journalist"]


def passages(paths, r):
    out = []
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as f:
            parts = [re.sub(r"\s+", " ", p).strip() for p in re.split(r"\n\s*\n", f.read())]
        out += [p for p in parts if 160 <= len(p) <= 1600 and p[-1] in ".!?\"\u201d" and "http" not in p]
    if not out:
        sys.exit("task_prompts.py: the texts have no paragraph of 160 to 1600 characters that ends a sentence")
    r.shuffle(out)
    return out


def passage(r, ps, most):
    out = r.choice(ps)
    while r.random() < .6:
        more = r.choice(ps)
        if len(out) + len(more) > most:
            break
        out += "\n\n" + more
    return out[:most]


SUMMARIES = [
    "Summarize: {p}", "Summarise the following text in {n} sentences.\n\n{p}", "{p}\n\nTL;DR:",
    "Give the main points of this text as a list, each with a short quote from it.\n\n{p}",
    "Write a short summary of this passage, and quote the most important sentence word for word:\n\n\"{p}\"",
    "What is this text about? Answer in one paragraph and quote the text.\n\n{p}",
    "Summarize this article for a newspaper in three bullet points.\n\n{p}",
    "Shorten the following text to half its length. Keep its words where you can.\n\n{p}"]


def summary(r, ps):
    n = r.choice(["two", "three", "four", "five"])
    return r.choice(SUMMARIES).format(p=passage(r, ps, r.choice([600, 1000, 1600])), n=n)


QUESTIONS = [
    "Who is the most important person in this passage, and what do they do?", "What happens first, and what happens then?",
    "Where does this take place? Quote the words that say so.", "Why does this happen?", "Which words describe the mood?",
    "What does the author think of it? Give a quote.", "List all the people and places that are named.",
    "What is said in the last sentence?", "How many persons are named, and who are they?", "What did they say to each other?",
    "What would be a good title for this passage? Explain why.",
    "Is the following true: somebody in the text is afraid? Explain."]
ASKED = ["{p}\n\n{q}", "Read the text and answer the question.\n\nText: {p}\n\nQuestion: {q}", "{q}\n\n{p}",
         "Context:\n{p}\n\nQuestion: {q}\nAnswer:", "Based on the passage below: {q}\n\n\"{p}\""]


def question(r, ps):
    return r.choice(ASKED).format(p=passage(r, ps, r.choice([500, 900, 1400])), q=r.choice(QUESTIONS))


ABOUT = ["what is said about {t}", "who is {t}", "what do the documents say about {t}", "where is {t} mentioned",
         "when did {t} appear", "what happened to {t}"]
SEARCHED = [
    "Answer the question with the help of these documents. Name the document that you use.\n\n{b}\n\nQuestion: {q}?",
    "{b}\n\nUse only the documents above to answer: {q}?",
    "Answer the question from the search results below.\nQuestion: {q}?\n\n{b}"]


def documents(r, ps):
    texts = [passage(r, ps, 450) for _ in range(r.choice([2, 3, 3, 4]))]
    topic = r.choice(re.findall(r"[A-Z][a-z]{3,}", " ".join(texts)) or ["the text"])
    form = r.choice(["Document {i}: {d}", "[{i}] {d}"])
    body = "\n\n".join(form.format(i=i + 1, d=d) for i, d in enumerate(texts))
    return r.choice(SEARCHED).format(b=body, q=r.choice(ABOUT).format(t=topic))


GERMAN = (
    ["Der Minister", "Die Firma", "Der alte Mann", "Meine Schwester", "Die Polizei", "Der Verein", "Das Kind", "Der Fahrer",
     "Die neue Lehrerin", "Die Stadt", "Ein Sprecher der Bank", "Der Trainer", "Die Regierung", "Unser Nachbar"],
    ["hat gestern", "hat am Montag", "hat nach langer Zeit", "wird morgen", "will im Sommer", "konnte nicht", "muss bald",
     "wollte schon immer", "soll im n\u00e4chsten Jahr"],
    ["ein neues Haus", "den Vertrag", "die Br\u00fccke \u00fcber den Fluss", "das alte Buch", "die Ergebnisse der Wahl",
     "den ersten Preis", "eine Antwort auf diese Frage", "das Spiel", "den Bericht \u00fcber die Arbeit"],
    [("gekauft", "kaufen"), ("gesehen", "sehen"), ("vorbereitet", "vorbereiten"), ("beschrieben", "beschreiben"),
     ("gefunden", "finden"), ("vergessen", "vergessen"), ("verkauft", "verkaufen"), ("bezahlt", "bezahlen")],
    ["weil das Wetter schlecht war", "obwohl niemand damit gerechnet hatte", "wie die Zeitung berichtet", "um Geld zu sparen",
     "ohne mit den Kollegen zu sprechen", "und alle waren zufrieden", "", ""])
SIMPLE = {
    "French": (["Le maire", "Ma m\u00e8re", "Le petit gar\u00e7on", "La directrice", "Le voisin", "Le professeur", "La ville"],
               ["va acheter", "veut voir", "a oubli\u00e9", "pr\u00e9pare", "cherche", "a vendu", "a trouv\u00e9"],
               ["une grande maison", "le livre rouge", "un nouveau jardin", "la r\u00e9ponse", "les billets de train"],
               ["pr\u00e8s de la gare", "avant la fin de l'ann\u00e9e", "avec ses amis", "parce qu'il pleut", ""]),
    "Spanish": (["El alcalde", "Mi hermana", "El ni\u00f1o", "La profesora", "El vecino", "La empresa", "El equipo"],
                ["quiere comprar", "ha olvidado", "busca", "prepara", "ha vendido", "va a ver"],
                ["una casa nueva", "el libro viejo", "los billetes", "un regalo para su madre", "la respuesta", "el informe"],
                ["cerca del r\u00edo", "antes del verano", "con sus amigos", "porque llueve", ""]),
    "English": (["The minister", "My sister", "The old man", "The company", "A teacher", "The team", "The driver"],
                ["bought", "forgot", "sold", "wants to see", "is looking for", "described"],
                ["a new house", "the red book", "the train tickets", "a present for a friend", "the report"],
                ["near the river", "before the end of the year", "because it was raining", "without a word", ""])}


def sentence(r, language):
    if language != "German":
        return " ".join(x for x in (r.choice(part) for part in SIMPLE[language]) if x) + "."
    who, how, what, verb, why = (r.choice(x) for x in GERMAN)
    return f"{who} {how} {what} {verb[0 if how.startswith('hat') else 1]}" + (", " + why if why else "") + "."


TRANSLATED = ["Translate {l} to {t}: {x}", "Translate this sentence from {l} into {t}:\n{x}",
              "What does this mean in {t}?\n\n\"{x}\"", "{x}\n\nTranslate the {l} text above into {t}.",
              "Please give the {t} translation of: {x}"]


def translation(r, ps):
    language = r.choice(["German", "German", "German", "French", "Spanish", "English"])
    to = "English" if language != "English" else r.choice(["German", "French", "Spanish"])
    text = " ".join(sentence(r, language) for _ in range(r.choice([1, 1, 1, 2, 3])))
    return r.choice(TRANSLATED).format(l=language, t=to, x=text)


def maths(r, ps):
    (a, b), (x, y), place = r.sample(NAMES, 2), r.sample(THINGS, 2), r.choice(PLACES)
    n, m, k, c = r.randint(3, 60), r.randint(2, 20), r.randint(2, 9), r.randint(2, 15)
    choices = ["half", "a third", "a quarter"], [25, 50, 75], [10, 20, 25, 50], [3, 4, 5, 6]
    share, cents, off, days = (r.choice(v) for v in choices)
    return r.choice([
        f"{a} has {n * k} {x} and gives {m} of them to {b}. Then {a} buys {k} boxes with {c} {x} each. How many {x} has {a}?",
        f"At {place} {n} {x} cost ${n * k}. {a} buys {m} {x} and pays with a $100 bill. How much change does {a} get?",
        f"{a} reads {m} pages a day for {k} days, {b} {n} pages a day for {c} days. Who reads more, and how many pages more?",
        f"A train travels {n * 3} km in {k} hours. How far does it travel in {c} hours at the same speed?",
        f"{a} earns ${n} an hour and works {k} hours a day, {days} days a week. How much does {a} earn in {m} weeks?",
        f"A rectangle is {n} cm long and {m} cm wide. What are its area and its perimeter? Show each step.",
        f"{a} is {k} times as old as {b}, who is {m} years old. How old will {a} be in {c} years?",
        f"A shop sells {x} at ${m}.{cents} each. There is {off}% off today. What do {k} {x} cost?",
        f"Solve for x: {k}x + {n} = {k * m + n}", f"What is {n * m} divided by {k}, rounded to two places?",
        f"Compute {n} * {m} + {c} * {k} - {n}. Explain the steps.",
        f"{a} has {n} {x} and {m} {y}. {b} has twice as many {x} but {min(m, k)} fewer {y}. How many things are that?",
        f"In a class of {n + 10} children {share} like {x}, and {m} like {y}. How many like neither, if nobody likes both?",
    ]) + r.choice(["", "", " Let's think step by step.", " Explain your answer."])


CODE = ['''def total_price(items, tax):
    total = 0
    for item in items:
        total = total + item["price"] * item["count"]
    return total * (1 + tax)
''', '''def read_words(path):
    words = []
    f = open(path)
    for line in f:
        for word in line.split():
            words.append(word.lower())
    f.close()
    return words
''', '''class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        self.balance += amount

    def withdraw(self, amount):
        if amount > self.balance:
            print("not enough money")
        else:
            self.balance -= amount
''', '''def find_largest(values):
    best = 0
    for i in range(0, len(values)):
        if values[i] > best:
            best = values[i]
    return best
''', '''function countLetters(text) {
  var counts = {};
  for (var i = 0; i < text.length; i++) {
    var c = text[i];
    if (counts[c] == undefined) {
      counts[c] = 1;
    } else {
      counts[c] = counts[c] + 1;
    }
  }
  return counts;
}
''', '''def merge(a, b):
    result = []
    i = 0
    j = 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            result.append(a[i])
            i += 1
        else:
            result.append(b[j])
            j += 1
    return result + a[i:] + b[j:]
''', '''int sum_of_digits(int n)
{
    int sum = 0;
    while (n > 0) {
        sum = sum + n % 10;
        n = n / 10;
    }
    return sum;
}
''', '''def average(numbers):
    total = 0
    for n in numbers:
        total += n
    return total / len(numbers)

def report(scores):
    for name in scores:
        print(name, average(scores[name]))
''', '''class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()

    def size(self):
        return len(self.items)
''', '''import json

def load_users(path):
    with open(path) as f:
        data = json.load(f)
    users = {}
    for entry in data:
        users[entry["id"]] = entry["name"]
    return users
''']
OTHER_NAMES = [("total", "amount"), ("items", "entries"), ("words", "tokens"), ("path", "filename"), ("values", "numbers"),
               ("counts", "histogram"), ("result", "merged"), ("sum", "digit_sum"), ("scores", "marks"), ("users", "people"),
               ("balance", "credit"), ("item", "element")]
NO_NAMES = {"return", "while", "range", "print", "self", "import", "open", "class", "else", "function", "append"}


def code(r, ps):
    text = r.choice(CODE)
    for old, new in r.sample(OTHER_NAMES, 3):
        if r.random() < .5:
            text = re.sub(rf"\b{old}\b", new, text)
    name = r.choice([w for w in re.findall(r"[a-z_]{4,}", text) if w not in NO_NAMES])
    ending, language = r.choice(["new", "list", "value", "of_user", "data"]), r.choice(["JavaScript", "Python", "Java", "C"])
    asked = r.choice([
        f"Rename `{name}` to `{name}_{ending}` in this code and print the whole code:", "Add type hints:",
        "Add a docstring and comments to this code:", "Explain this code line by line:", "Write tests for this code:",
        "Find a mistake or a weakness in this code and print the corrected version:",
        "Rewrite this code so that it handles empty input:", "Simplify this code without changing what it does:",
        f"Translate this code to {language}:", "Turn the loop into a helper function:",
        "Add a check of the arguments to this code and repeat it in full:"])
    return r.choice(["{a}\n\n```\n{c}```", "```\n{c}```\n\n{a}", "{a}\n{c}"]).format(a=asked, c=text)


JOBS = ["reverse a string", "compute the n-th Fibonacci number", "check whether a number is prime", "count vowels",
        "sort a list of pairs by the second element", "remove duplicates from a list", "find the longest word of a sentence",
        "convert Celsius to Fahrenheit", "read a CSV file and add up a column", "flatten a nested list", "compute a factorial",
        "find two numbers that add up to a target", "check for balanced brackets", "merge two dictionaries", "rotate a matrix",
        "print a multiplication table", "find the second largest number", "group words by their first letter",
        "compute the mean and the median", "transpose a matrix"]
PROGRAMS = ["Write a Python function to {t}.", "Write a {l} program that can {t}. Explain it.", "How do I {t} in {l}?",
            "Complete this function.\n\n```python\ndef {f}(x):\n    \"\"\"{c}.\"\"\"\n```"]


def program(r, ps):
    t = r.choice(JOBS)
    language = r.choice(["Python", "Python", "JavaScript", "C", "Java"])
    return r.choice(PROGRAMS).format(t=t, l=language, f=re.sub(r"\W+", "_", t)[:30], c=t.capitalize())


GENERAL = [
    "Explain {t} to a child of ten.", "Write a short story about {t}.", "Give me five tips about {t}.", "Compare {t} and {u}.",
    "What are the advantages and disadvantages of {t}?", "Write an e-mail to a colleague about {t}.", "Why is {t} important?",
    "You are {r}. Tell me about {t}.", "Pretend to be {r}. What would you say about {t}?", "Make a table with facts about {t}.",
    "Write a poem of eight lines about {t}.", "What is the most common mistake people make about {t}?",
    "Write a blog post about {t} with headings.", "Describe {t} vividly, as {r} would.", "Plan a lesson about {t}.",
    "List ten words that have to do with {t} and use each in a sentence.", "What do {t} and {u} have in common?",
    "Write a dialogue between {a} and {b} about {t}.", "Argue for and against {t}, then give your opinion.",
    "Give me a JSON object that describes {t}, with fields name, category, facts (a list) and year.",
    "Write a speech about {t} in a serious tone.", "How would you explain the link between {t} and {u}?"]


def general(r, ps):
    (t, u), (a, b) = r.sample(TOPICS, 2), r.sample(NAMES, 2)
    return r.choice(GENERAL).format(t=t, u=u, a=a, b=b, r=r.choice(ROLES))


CATEGORIES = {summary: 16, question: 14, documents: 14, translation: 14, maths: 14, code: 8, program: 4, general: 16}


def main():
    if len(sys.argv) < 4 or not (sys.argv[1].isdigit() and sys.argv[2].isdigit()):
        sys.exit(__doc__)
    r = random.Random(int(sys.argv[2]))
    ps, seen = passages(sys.argv[3:], r), set()
    while len(seen) < int(sys.argv[1]):
        make = r.choices(list(CATEGORIES), list(CATEGORIES.values()))[0]
        prompt = make(r, ps)
        if prompt in seen:
            continue
        seen.add(prompt)
        print(json.dumps({"category": make.__name__, "prompt": prompt}, ensure_ascii=False))


if __name__ == "__main__":
    main()
