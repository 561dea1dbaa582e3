"""Questions that nobody would ask: every operation of the service, with well-formed and malformed input.

Every trial puts ten questions to each documented operation of three models, one of them with features: 34 trials are
1,000 questions each. An answer has a documented status, type and shape and is never a fault of the service; malformed
input is refused.
"""

from collections import Counter
from pathlib import Path
from typing import Any, cast

from campaigns._subjects import answers, clicks
from campaigns._trials import Campaign, Outcome, Random, main, quiet_warnings
from sadrec import SAD
from sadrec._core.files import write_whole

CASES = 5
"""Questions to an operation, well formed and malformed each."""


def prepare(folder: Path) -> list[Any]:
    """Serve a model of comparisons, with titles, and two of interactions; return their operations."""
    import schemathesis

    from sadrec.serving import ServeSettings, create_app
    from sadrec.serving.reload import load_warm

    operations = []
    with quiet_warnings():
        clicked = clicks(60, 40)
        features: dict[str, Any] = {
            "item_features": {item: {"kind": "ab"[row % 2], "size": row} for row, item in enumerate(clicked.items)},
            "user_features": {user: ["old" if row % 3 else "new"] for row, user in enumerate(clicked.users)},
        }
        subjects: list[tuple[str, Any, dict[str, Any]]] = [
            ("said", answers(), {}),
            ("clicked", clicked, {}),
            ("known", clicked, features),
        ]
        titles = str(folder / "titles.csv")
        write_whole(titles, "item,title\n" + "".join(f"{item},Dish {item}\n" for item in answers().items))
        for name, data, options in subjects:
            path = folder / f"{name}.sad"
            SAD(3, iterations=5).fit(data, show_progress=False, **options).save(path)
            settings = ServeSettings(
                str(path),
                items=titles if name == "said" else None,
                log=str(folder / f"{name}.jsonl"),
                log_megabytes=1,
            )
            documented = schemathesis.openapi.from_asgi("/openapi.json", create_app(settings, load_warm(settings)))
            operations += [cast(Any, result).ok() for result in documented.get_all_operations()]
    return operations


def trial(subject: list[Any], rng: Random, folder: Path) -> Outcome:
    """Put some questions to every operation."""
    from schemathesis import GenerationMode

    counts: Counter[str] = Counter()
    for operation in subject:
        before = counts[operation.label]
        modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
        while counts[operation.label] < before + 2 * CASES:  # one without parameters is asked the same again
            mode, earlier = modes.pop(0) if modes else GenerationMode.POSITIVE, counts[operation.label]
            wrong = _asked(operation, mode, int(rng.integers(2**32)), counts)
            if not wrong and mode == GenerationMode.POSITIVE and counts[operation.label] == earlier:
                wrong = "no well-formed question can be made of what is documented"  # nor would be, for ever
            if wrong:
                return Outcome("undocumented", f"{operation.label}, {mode.value}: {wrong}", counts)
    return Outcome("documented", figures=counts)


def told(counts: Counter[str]) -> str:
    """Say how many questions the operations got, and with which statuses they were answered."""
    statuses = {int(name): count for name, count in sorted(counts.items()) if name.isdecimal()}
    questions = {name: count for name, count in counts.items() if not name.isdecimal()}
    if not questions:
        return "no question was put"
    fewest = min(questions, key=lambda name: questions[name])
    faults = sum(count for status, count in statuses.items() if status >= 500)
    given = ", ".join(f"{count:,} x {status}" for status, count in statuses.items())
    return (
        f"{sum(questions.values()):,} questions to {len(questions)} operations, at least {questions[fewest]:,} each "
        f"({fewest}), {faults:,} faults of the service; answers: {given}"
    )


def _asked(operation: Any, mode: Any, seed: int, counts: Counter[str]) -> str:
    """Put questions of one kind to an operation and count them; return what is wrong with an answer, if anything is."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis.errors import Unsatisfiable
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.errors import SchemathesisError
    from schemathesis.specs.openapi import checks

    def refused(context: Any, response: Any, case: Any) -> bool | None:
        """Malformed input is refused; schemathesis does not take 413, too long, for a refusal."""
        return None if response.status_code == 413 else checks.negative_data_rejection(context, response, case)

    expected = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        refused,
    ]
    options: dict[str, Any] = {"database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}

    @seeded(seed)
    @settings(max_examples=CASES, phases=[Phase.generate], **options)
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        response = case.call()
        counts.update((operation.label, str(response.status_code)))
        case.validate_response(response, checks=expected)

    try:
        ask()
    except (Unsatisfiable, SchemathesisError):  # an operation without parameters has no malformed ones
        return ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return " ".join(str(error).split())[:500] or type(error).__name__
    return ""


CAMPAIGN = Campaign(
    unit="rounds of questions to the service",
    kept=("documented",),
    broken=("undocumented",),
    prepare=prepare,
    trial=trial,
    seconds=600,
    memory=4.0,
    told=told,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=34)
