"""Files of hosts: what every form means, and what is refused.

Usage: hostfiles_test.py RUBATO.
"""

import case

SCENARIO = {
    "model": {"name": "softmax"},
    "workers": {"count": 4, "batch_size": 10},
    "protocol": {"name": "async"},
}


class HostfilesTest(case.Case):
    """rubato check --hostfile: one form a test."""

    def hosts(self, text: bytes) -> str:
        """What check says about the ranks."""
        (self.work / "hosts").write_bytes(text)
        done = self.call("check", self.write(SCENARIO), "--hostfile", "hosts")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_last_host_counts_without_a_newline(self) -> None:
        told = self.hosts(b"Tremblay\nJupiter\nFafard")
        self.assertIn("--host Tremblay:1,Jupiter:1,Fafard:1 --oversubscribe", told)
        self.assertIn(" --bind-to none", told)  # two threads a rank
        self.assertIn("rank 2 on Fafard", told)

    def test_line_ends_of_windows(self) -> None:
        self.assertIn("--host Tremblay:1,Jupiter:1 ", self.hosts(b"Tremblay\r\n\r\nJupiter\r\n"))

    def test_a_colon_and_a_number_of_slots(self) -> None:
        told = self.hosts(b"Tremblay:2\nJupiter:2\nFafard:3\n")
        self.assertIn("--host Tremblay:2,Jupiter:2,Fafard:3 ", told)
        self.assertNotIn("--oversubscribe", told)
        self.assertIn("ranks 0 to 1 on Tremblay", told)
        self.assertIn("rank 4 on Fafard", told)

    def test_slots_of_open_mpi_and_comments(self) -> None:
        told = self.hosts(b"# comment\n\nnode-0.example.org slots=2 max_slots=4\nnode-1.example.org slots=3 # more\n")
        self.assertIn("mpirun -n 5 --host node-0.example.org:2,node-1.example.org:3 ", told)

    def test_a_host_that_is_named_again_has_more_slots(self) -> None:
        told = self.hosts(b"bob\ncarl\nbob\ncarl\n")
        self.assertIn("--host bob:2,carl:2 --oversubscribe", told)
        self.assertIn("rank 4 on bob", told)

    def test_what_is_refused(self) -> None:
        scenario = self.write(SCENARIO)
        for text, words in ((b"", "names no host"), (b"# none\n\n", "names no host"), (b"a slots=0\n", "hosts:1: "),
                            (b"a\nb slot=2\n", "hosts:2: "), (b"a:x\n", "number of slots"),
                            (b"a:2 slots=2\n", "nothing behind"), (None, "nowhere"),
                            (b"\xef\xbb\xbfa\nb\n", "hosts:1: starts with a byte order mark"),
                            (b"\xff\xfea\0\n\0", "looks like UTF-16"), (b"a\nb\0\n", "hosts:2: holds a zero byte"),
                            (b"\x1f\x8b\x08\0", "compressed by gzip"), (b"a\n+b\n", 'hosts:2: expected the name'),
                            (b"a\nb\xe4\x1b[1m\n", 'found "b??[1m"')):
            with self.subTest(text):
                if text is not None:
                    (self.work / "hosts").write_bytes(text)
                done = self.call("check", scenario, "--hostfile", "nowhere" if text is None else "hosts")
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertRegex(done.stderr, r"\Arubato: [^\n]+\n\Z")
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    case.main()
