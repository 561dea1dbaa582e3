"""What `make audit` says of vulnerabilities: found, none, or that nobody could be asked."""

import pytest

from campaigns._audit import SERVICES, audit

FINE = [{"name": "numpy", "version": "2.0", "vulns": []}]
NOBODY = "nothing could be looked up: none of pypi, osv, esms answers from here; run it where there is a network\n"
BAD = [*FINE, {"name": "old", "version": "1.0", "vulns": [{"id": "PYSEC-1"}, {"id": "CVE-2"}]}]


@pytest.mark.parametrize(
    ("answers", "code", "words"),
    [
        (
            {},
            2,
            "nothing could be looked up: none of pypi, osv, esms answers from here; run it where there is a network\n",
        ),
        ({"osv": FINE}, 0, "1 packages, 0 with known vulnerabilities, says osv\n"),
        (
            {"pypi": BAD, "osv": FINE},
            1,
            "old 1.0: PYSEC-1, CVE-2\n2 packages, 1 with known vulnerabilities, says pypi\n",
        ),
    ],
)
def test_the_first_service_that_answers_decides(answers, code, words, capsys):
    addresses = []

    def ask(service, python):
        addresses.append(service)
        return answers.get(service)

    assert audit("python", ask) == code
    out, err = capsys.readouterr()
    assert out + err == words
    assert addresses == list(SERVICES[: len(addresses)])
