# SPDX-License-Identifier: MIT
"""Experiments, results, and one text."""

import os
import signal
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

import wager
from wager.plot import Mark, intervals, ticks

MODEL = "models/story-draft-q8_0.gguf"
CONFIG = {
    "name": "small",
    "question": "Is <this> quick?",
    "target": {"model": MODEL, "threads": 1},
    "prompts": {"file": "configs/prompts/quickstart.jsonl", "limit": 2},
    "max_tokens": 8,
    "repeats": 1,
    "sweep": {"draft": [{"kind": "ngram", "k": 2}, {"kind": "suffix", "k": 3}]},
}


class Experiments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ.get("WAGER_SCRATCH"))
        cls.result = wager.run(CONFIG, Path(cls.folder.name) / "run", set={"max_tokens": 10, "seed": 3})

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_results(self):
        result = self.result
        self.assertEqual((len(result), result.name, result.config["max_tokens"]), (2, "small", 10))
        cell = result[0]
        self.assertEqual((cell.drafter, cell.lossless, cell.same_text), ("ngram", True, True))
        self.assertGreaterEqual(float(cell.tau), 1)
        self.assertEqual(
            cell.fields["tokens"], sum(r["tokens"] for r in result.requests() if r["arm"] == "cell" and r["cell"] == 0)
        )
        self.assertIn("draft.kind=ngram", cell.name)
        again = wager.read(result.folder)
        self.assertEqual(again.cells, result.cells)
        self.assertEqual(list(Path(".").glob(".wager-*")), [], "no config is left behind")

    def test_what_a_notebook_shows(self):
        html = self.result._repr_html_()
        self.assertIn("Is &lt;this&gt; quick?", html)
        self.assertIn("<svg", html)
        drawing = self.result.plot("tau")
        root = ElementTree.fromstring(drawing._repr_svg_())
        self.assertEqual(len(root.findall(".//{http://www.w3.org/2000/svg}circle")), 2)
        self.assertEqual(repr(drawing), "Drawing(title='tokens per target pass')")
        self.assertEqual(drawing.save(Path(self.folder.name) / "tau.svg").read_text(), drawing.svg)
        self.assertIn("tau", self.result.table())
        self.assertEqual(len(self.result.numbers()), 2)
        self.assertTrue(self.result.report().read_text().startswith("<!"))

    def test_drawings_without_numbers(self):
        self.assertIn("<svg", intervals([], "nothing").svg)
        self.assertIn("<svg", intervals([Mark("one", 2.0)], "one").svg)
        self.assertEqual(ticks(0.9, 2.1), [1.0, 1.5, 2.0])

    def test_frames(self):
        try:
            import pandas
        except ImportError:
            with self.assertRaisesRegex(ImportError, "pip install pandas"):
                self.result.frame()
            return
        frame = self.result.frame()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame["drafter"]), ["ngram", "suffix"])
        self.assertIn("cell.draft.kind", frame.columns)

    def test_what_is_raised_ends_the_program_and_resume_goes_on(self):
        out = Path(self.folder.name) / "ended"
        lines = out / "requests.jsonl"
        config = {**CONFIG, "prompts": {**CONFIG["prompts"], "limit": 24}, "max_tokens": 200, "repeats": 4}

        def after_a_request(*_):
            if lines.exists() and lines.stat().st_size:
                signal.setitimer(signal.ITIMER_REAL, 0)
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, after_a_request)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        try:
            with self.assertRaises(KeyboardInterrupt):
                wager.run(config, out)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        with self.assertRaises(ChildProcessError):  # none is left
            os.waitpid(-1, os.WNOHANG)
        done = len(lines.read_text().splitlines())
        self.assertLess(done, 24 * 3 * 4, "it ended before its end")
        self.assertEqual(len(list(wager.run(config, out, resume=True).requests())), 24 * 3 * 4)

    def test_what_is_refused(self):
        with self.assertRaises(wager.Error) as caught:
            wager.run({**CONFIG, "max_tokn": 3}, Path(self.folder.name) / "bad")
        self.assertIn("max_tokens", str(caught.exception))
        with self.assertRaisesRegex(wager.FileError, "no such file; expected the result folder"):
            wager.read(self.folder.name)
        with self.assertRaises(ValueError):
            wager.run(CONFIG, resume=True)


class Generate(unittest.TestCase):
    def test_a_text(self):
        plain = wager.generate(MODEL, "Once upon a time", max_tokens=12)
        self.assertEqual((len(plain.tokens), plain.tau, plain.accepted, plain.finish), (12, 1, 0, "length"))
        self.assertTrue(plain.text)
        self.assertEqual(str(plain), plain.text)
        drafted = wager.generate(
            Path(MODEL), "Once upon a time", max_tokens=12, draft={"kind": "model", "model": MODEL, "length": 3}
        )
        self.assertEqual((drafted.text, drafted.tokens), (plain.text, plain.tokens))
        self.assertEqual(drafted.accepted, 9, "its own draft model is always right: three a pass and one more")
        self.assertEqual(drafted.tau, 4)

    def test_missing_files(self):
        gone = "gone.gguf"
        for call in (
            lambda: wager.generate(gone, "x"),
            lambda: wager.generate(MODEL, "x", draft={"kind": "model", "model": gone}),
            lambda: wager.Drafter("model", vocab=4096, model=gone),
            lambda: wager.Drafter("sam", corpus=gone),
            lambda: wager.run("gone.json"),
            lambda: wager.run({**CONFIG, "target": {"model": gone}}),
            lambda: wager.read("gone"),
            lambda: wager.trace.Reader("gone"),
        ):
            with self.assertRaises(wager.FileError) as caught:
                call()
            self.assertEqual(caught.exception.code, "ENOENT")
            self.assertIsInstance(caught.exception, FileNotFoundError)
        with self.assertRaises(wager.ArgumentError):
            wager.generate(gone, "x", max_tokn=1)

    def test_messages_name_the_argument(self):
        for call, begins in (
            (lambda: wager.generate("/nope", "x"), "model='/nope': /nope: there is no such file"),
            (lambda: wager.generate(MODEL, "x", draft={"kind": "sufix"}), "draft={'kind': 'sufix'}: kind: unknown drafter"),
            (lambda: wager.Drafter("sufix"), "kind='sufix': unknown drafter"),
            (lambda: wager.Drafter("suffix", k="x"), "k='x': expected integer"),
            (lambda: wager.Drafter("suffix", rule="mach"), "rule='mach': rule: unknown verification rule"),
        ):
            with self.assertRaises(wager.Error) as caught:
                call()
            self.assertEqual(str(caught.exception)[: len(begins)], begins)


if __name__ == "__main__":
    unittest.main()
