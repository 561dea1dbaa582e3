"""What stands around the verbs: unknown users, keys, bounds, health, figures, the log, and another model in place."""

import asyncio
import errno
import gzip
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from sadrec import SAD, Comparisons
from sadrec._core.files import checksum_of
from sadrec.data import _text
from sadrec.serving import Keys, new_key, questions, verbs
from sadrec.serving.events import EventLog
from sadrec.serving.loaded import Loaded
from sadrec.serving.metrics import Metrics
from sadrec.serving.reload import Reloader, load_warm
from sadrec.serving.settings import MOST_AT_ONCE, MOST_BODY, MOST_CONNECTIONS


# -- who is not known -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("user", ["999", "somebody", "7.5", "99999999999999999999999", ""])
def test_an_unknown_user_is_told_what_to_do(running, user):
    answer = running.client.get("/v1/recommend", params={"user": user})
    assert answer.status_code == 404 and "; for somebody new, POST likes or comparisons" in answer.json()["error"]


def test_popular_items_are_given_only_where_asked_for_and_said(running):
    answer = running.client.get("/v1/recommend", params={"user": "999", "fallback": "popular", "N": 3}).json()
    assert answer["fallback"] == "popular"
    assert [one["item"] for one in answer["items"]] == running.model.recommend(None, N=3)[0].tolist()


@pytest.mark.parametrize("user", [999, "somebody", "7.5", "99999999999999999999999"])
def test_an_unknown_user_comes_back_as_given(running, user):
    question = {"user": user, "fallback": "popular"}
    answered = running.client.get("/v1/recommend", params=question), running.client.post("/v1/recommend", json=question)
    assert [answer.json()["user"] for answer in answered] == [user, user]


@pytest.mark.parametrize(
    ("users", "given", "expected"), [([1.5, 2.5], "nan", "nan"), ([1.5, 2.5], "3.5", 3.5), (["1", "2"], "9", "9")]
)
def test_a_number_comes_back_as_a_number_where_ids_are_numbers(users, given, expected):
    served = Loaded(SAD.from_factors(np.ones((2, 1)), np.ones((2, 1)), users=users), "digest")
    question = questions.Recommend(user=given, fallback="popular")
    assert verbs.recommend(served, question)["user"] == expected


def test_an_unknown_item_is_named(running):
    answer = running.client.post("/v1/rank", json={"user": 7, "items": [1, 999]})
    assert answer.status_code == 404 and "unknown item 999" in answer.json()["error"]


@pytest.mark.parametrize("empty", [{"likes": []}, {"comparisons": []}])
def test_an_empty_list_is_no_silent_average_user(running, empty):
    for verb, fields in (("recommend", {}), ("visitor", {}), ("prefer", {"pairs": [{"item": 1, "rival": 2}]})):
        answer = running.client.post(f"/v1/{verb}", json={**empty, **fields})
        assert answer.status_code == 422 and "is empty. Leave it out" in answer.json()["error"]
    answer = running.client.post("/v1/recommend", json={**empty, "fallback": "popular", "N": 3}).json()
    assert answer["fallback"] == "popular" and answer["user"] == "everybody"
    assert [one["item"] for one in answer["items"]] == running.model.recommend(None, N=3)[0].tolist()


@pytest.mark.parametrize(
    "parameters", [[], ["keep_seen=true"], ["keep_seen=false", "method=margin"], ["fallback=none"]]
)
def test_a_question_has_one_answer_in_whatever_order_it_is_asked(running, clicks, parameters):
    """``?user=7&N=3`` and ``?N=3&user=7`` had other digits and other headers."""
    for service in (running, clicks):
        answers = [
            service.client.get("/v1/recommend?" + "&".join(order))
            for order in itertools.permutations(["user=7", "N=3", *parameters])
        ]
        posted = service.client.post(
            "/v1/recommend", json={"user": 7, "N": 3, "keep_seen": "keep_seen=true" in parameters}
        )
        assert {answer.content for answer in (*answers, posted)} == {answers[0].content}
        assert {str(answer.headers.raw) for answer in (*answers, posted)} == {str(answers[0].headers.raw)}
        assert answers[0].status_code == 200 and len(answers[0].json()["items"]) == 3


@pytest.mark.parametrize("user", ["7", "%37", "07", "+7", "7%20", "8&user=7"])
def test_a_user_is_the_same_however_the_address_writes_it(running, user):
    direct, by_route = (
        running.client.get(f"/v1/recommend?user={user}{parameter}") for parameter in ("", "&method=margin")
    )
    assert direct.content == by_route.content == running.client.get("/v1/recommend?user=7").content


def test_scores_have_the_digits_of_single_precision(running):
    answer = running.client.get("/v1/recommend?user=7&N=5").json()
    np.testing.assert_array_equal(
        np.float32([one["score"] for one in answer["items"]]), running.model.recommend(7, N=5)[1]
    )
    assert all(str(np.float32(one["score"])) == str(one["score"]) for one in answer["items"])


# -- bounds -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("path", "question", "part"),
    [
        ("recommend", {"user": 7, "N": 0}, "N: "),
        ("recommend", {"user": 7, "N": 1001}, "N: "),
        ("recommend", {"likes": [1] * 1001}, "likes: "),
        ("recommend", {"user": 7, "likes": [1]}, "only one of them"),
        ("recommend", {"user": 7, "items": [1], "filter_items": [2]}, "not both"),
        ("recommend", {"user": 7, "n": 3}, "there is no such name here"),
        ("slate", {"user": 7, "items": [1, 1]}, "item 1 is given twice"),
        ("visitor", {"comparisons": [{"winner": 1, "loser": 1}]}, "compared with itself"),
        ("recommend", {"user": True}, "user"),
    ],
)
def test_what_is_out_of_bounds_is_refused_in_one_sentence(running, path, question, part):
    answer = running.client.post(f"/v1/{path}", json=question)
    assert answer.status_code == 422 and part in answer.json()["error"], answer.text


def test_a_body_that_is_too_long_or_no_json_is_refused(running):
    answer = running.client.post("/v1/rank", content=b"[" * (MOST_BODY + 1))
    assert answer.status_code == 413
    answer = running.client.post("/v1/rank", content=(b"x" for _ in range(MOST_BODY + 1)))  # of unknown length
    assert answer.status_code == 413
    headers = {"Content-Type": "application/json"}
    assert running.client.post("/v1/rank", content=b"{", headers=headers).status_code == 400


@pytest.mark.parametrize(
    ("body", "kind", "status", "part"),
    [
        (b'{"user": 7, "items": [1]}', "application/x-www-form-urlencoded", 422, "Content-Type: application/json"),
        (b'{"user": "\xff"}', "application/json", 400, "the body is not JSON"),
        (b"[" * 100_000, "application/json", 400, "the body is not JSON"),
        (b"[]", "application/json", 422, "a question is a JSON object"),
        (b'{"user": NaN, "items": [1]}', "application/json", 422, "user: an id is a whole number"),
    ],
)
def test_a_body_that_cannot_be_understood_is_told_the_remedy(running, body, kind, status, part):
    answer = running.client.post("/v1/rank", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status and part in answer.json()["error"], answer.text


def test_who_asks_when_too_much_is_asked_already_is_told_to_wait(started):
    running = started()
    running.service._at_once = MOST_AT_ONCE
    answer = running.client.post("/v1/rank", json={"user": 7, "items": [1, 2]})
    assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
    assert "too many requests at once" in answer.json()["error"]
    assert running.client.get("/v1/recommend?user=7").status_code == 200  # takes no time
    assert [running.client.get(path).status_code for path in ("/livez", "/readyz", "/metrics")] == [200, 200, 200]
    running.service._at_once = 0
    running.service.connections = range(MOST_CONNECTIONS + 1)
    assert running.client.get("/v1/describe").status_code == 503
    running.service.connections = range(MOST_CONNECTIONS)
    assert running.client.get("/v1/describe").status_code == 200


def test_the_page_about_the_interface_needs_no_other_server(running):
    page = running.client.get("/docs")
    assert page.status_code == 200 and "http" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert running.client.get("/docs.js").status_code == 200


def test_a_verb_that_is_not_there_or_asked_in_another_way_is_told(running):
    answer = running.client.get("/v1/prefer")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST") and "send POST" in answer.json()["error"]
    for answer in (running.client.get("/v1/nothing"), running.client.post("/v1/nothing", json={})):
        assert answer.status_code == 404 and "no such verb" in answer.json()["error"]
    assert [running.client.head(path).status_code for path in ("/livez", "/readyz")] == [200, 200]


def test_a_visitor_who_is_a_user_is_not_shown_what_they_had(clicks):
    seen = clicks.model.recommend(7, N=30)[0].tolist()
    answer = clicks.client.post("/v1/visitor", json={"user": 7, "N": 30}).json()
    assert [one["item"] for one in answer["items"]] == seen and len(seen) < 30


def test_an_address_with_nothing_behind_it_says_where_something_is(running):
    answer = running.client.get("/nothing")
    assert answer.status_code == 404 and "/docs lists what can be asked" in answer.json()["error"]


def test_likes_never_make_a_visitor_less_certain_than_nothing(clicks):
    nobody = clicks.model.visitor(None)
    for likes in ([3], [3, 4], list(range(10))):
        somebody = clicks.model.visitor(likes)
        for rival in range(11, 20):
            one, none = (who.deviation(who.users[0], 10, rival) for who in (somebody, nobody))
            assert one <= none * (1 + 1e-6)


def test_who_asks_about_a_user_of_whom_nothing_is_uncertain_is_told_how_else(clicks):
    answer = clicks.client.post("/v1/question", json={"user": 7})
    assert answer.status_code == 422 and "--posterior" in answer.json()["error"]


def test_ids_may_be_written_as_text(running):
    assert running.client.post("/v1/rank", json={"user": 7, "items": ["1_0", 2]}).status_code == 404
    as_text = running.client.post("/v1/rank", json={"user": "7", "items": ["1", "2"]}).json()
    assert as_text == running.client.post("/v1/rank", json={"user": 7, "items": [1, 2]}).json()


# -- keys -------------------------------------------------------------------------------------------------------------
def test_only_who_has_a_key_may_ask(started, tmp_path):
    path = tmp_path / "keys"
    key = new_key(path, "ann's phone")
    assert key not in path.read_text() and path.stat().st_mode & 0o777 == 0o600
    client = started(keys=str(path)).client
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-API-Key": ""}, {"Authorization": f"Basic {key}"}):
        answer = client.get("/v1/recommend?user=7", headers=headers)
        assert answer.status_code == 401 and "key" in answer.json()["error"]
        assert answer.headers["www-authenticate"] == "Bearer"
    for headers in ({"Authorization": f"Bearer {key}"}, {"X-API-Key": key}):
        assert client.get("/v1/recommend?user=7", headers=headers).status_code == 200
    assert client.get("/metrics").status_code == 401
    assert client.get("/livez").status_code == client.get("/readyz").status_code == client.get("/").status_code == 200


def test_a_key_is_added_below_a_last_line_without_an_end(tmp_path):
    path = tmp_path / "keys"
    first = new_key(path, "ann")
    path.write_text(path.read_text().rstrip("\n"))
    second = new_key(path, "bob")
    for key in (first, second):
        assert Keys(path).allow([(b"x-api-key", key.encode())])


def test_the_name_beside_a_hash_may_be_of_any_encoding_and_a_damaged_hash_is_told_with_its_file(tmp_path):
    path = tmp_path / "keys"
    key = new_key(path, "caf\u00e9")
    content = path.read_text(encoding="utf-8")
    path.write_bytes(content.encode("latin-1"))
    assert Keys(path).allow([(b"x-api-key", key.encode())])
    path.write_bytes(b"\xe9" + content.encode())
    with pytest.raises(ValueError, match=r"keys, line 1, is not a hash and a name"):
        Keys(path)


def test_keys_are_withdrawn_and_a_damaged_file_allows_nobody(tmp_path):
    path = tmp_path / "keys"
    first, second = new_key(path, "first"), new_key(path, "second")
    keys = Keys(path)

    def allowed(key):
        return keys.allow([(b"x-api-key", key.encode())])

    assert allowed(first) and allowed(second)
    path.write_text(path.read_text().splitlines()[1] + "\n")
    keys.refresh()
    assert not allowed(first) and allowed(second)
    path.write_text("what is this\n")
    keys.refresh()
    assert not allowed(second)
    with pytest.raises(ValueError, match="line 1, is not a hash and a name"):
        Keys(path)
    with pytest.raises(ValueError, match="needs a name"):
        new_key(path, "  ")


def test_other_pages_may_not_ask_unless_they_are_named(running, started):
    headers = {"Origin": "https://shop.example"}
    assert "access-control-allow-origin" not in running.client.get("/v1/describe", headers=headers).headers
    named = started(cors=("https://shop.example",)).client
    assert named.get("/v1/describe", headers=headers).headers["access-control-allow-origin"] == headers["Origin"]


def test_a_named_page_may_ask_with_a_key_and_on_the_direct_path(started, tmp_path):
    key = new_key(tmp_path / "keys", "the shop")
    client = started(cors=("https://shop.example",), keys=str(tmp_path / "keys")).client
    origin = {"Origin": "https://shop.example"}
    wishes = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key,content-type"}
    beforehand = client.options("/v1/rank", headers=origin | wishes)  # browsers send no key with it
    assert beforehand.status_code == 200 and "X-API-Key" in beforehand.headers["access-control-allow-headers"]
    refused = client.get("/v1/recommend?user=7", headers=origin)
    answer = client.get("/v1/recommend?user=7", headers=origin | {"X-API-Key": key})
    assert (refused.status_code, answer.status_code) == (401, 200)
    for one in (refused, answer):
        assert one.headers["access-control-allow-origin"] == origin["Origin"]
    foreign = client.get("/v1/recommend?user=7", headers={"Origin": "https://other.example", "X-API-Key": key})
    assert "access-control-allow-origin" not in foreign.headers


# -- health and figures -----------------------------------------------------------------------------------------------
def test_before_the_model_is_there_the_service_lives_but_is_not_ready(settings):
    from fastapi.testclient import TestClient

    from sadrec.serving import create_app

    client = TestClient(create_app(settings()))  # without its life span nothing is loaded
    assert client.get("/livez").status_code == 200
    assert client.get("/readyz").json() == {"status": "loading", "model": None}
    answer = client.get("/v1/recommend?user=7")
    assert answer.status_code == 503 and answer.headers["retry-after"] == "1"


def test_the_model_is_loaded_when_the_server_starts(settings):
    from fastapi.testclient import TestClient

    from sadrec.serving import create_app

    with TestClient(create_app(settings())) as client:
        for _ in range(600):
            if client.get("/readyz").status_code == 200:
                break
            client.portal.call(asyncio.sleep, 0.05)
        assert client.get("/readyz").json()["status"] == "ready"
        assert client.get("/v1/recommend?user=7").status_code == 200


def test_figures_count_what_was_asked(started):
    running = started()
    running.client.get("/v1/recommend?user=7")
    running.client.get("/v1/recommend?user=999")
    running.client.get("/v1/nothing-of-the-kind")
    page = running.client.get("/metrics").text
    assert 'sadrec_requests_total{status="200",verb="recommend"} 1.0' in page
    assert 'sadrec_requests_total{status="404",verb="recommend"} 1.0' in page
    assert 'sadrec_requests_total{status="404",verb="unknown"} 1.0' in page
    assert f'sadrec_model_info{{hash="{running.served.digest}"}} 1.0' in page
    assert 'sadrec_request_seconds_count{verb="recommend"} 2.0' in page


def test_a_service_that_is_ready_answers(started, monkeypatch):
    running = started()
    assert running.client.get("/readyz").status_code == 200

    def broken(*_):
        raise RuntimeError("no answer")

    monkeypatch.setattr(running.served, "entries", broken)
    answer = running.client.get("/readyz")
    assert answer.status_code == 503 and answer.json()["status"] == "failing"
    assert running.client.get("/livez").status_code == 200


def test_a_draining_service_asks_its_clients_to_leave(started):
    running = started()
    running.service.reloader.draining = True
    assert running.client.get("/readyz").status_code == 503
    for path in ("/v1/recommend?user=7", "/v1/describe"):
        assert running.client.get(path).headers["connection"] == "close"


def test_the_page_may_load_nothing_foreign(running):
    headers = running.client.get("/").headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"


def test_an_answer_is_counted_before_it_is_sent(started):
    """Another worker may be asked for figures as soon as it is there, and this one be killed."""
    service, counted = started().service, []
    scope = {"type": "http", "method": "GET", "path": "/v1/recommend", "query_string": b"user=7", "headers": []}

    async def send(message):
        counted.append(b'sadrec_requests_total{status="200",verb="recommend"} 1.0' in service.metrics.page())

    asyncio.run(service({**scope, "http_version": "1.1", "scheme": "http", "root_path": ""}, None, send))
    assert counted == [True, True]


def test_a_fault_is_an_answer_too(started, monkeypatch):
    from sadrec.serving.verbs import catalogue

    running = started()

    def fail(*_):
        raise RuntimeError("bug")

    monkeypatch.setattr(catalogue, "_about", fail)
    answer = running.client.get("/v1/describe")
    assert answer.status_code == 500 and "bug" not in answer.text
    assert "sadrec_errors_total 1.0" in running.client.get("/metrics").text


def number_fields(service):
    """Return path, name and type of every number in a question, as the interface documents them."""
    schema = service.app.openapi()
    parts = schema["components"]["schemas"]
    for path, ways in schema["paths"].items():
        if "post" in ways:
            body = ways["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
            for name, field in parts[body]["properties"].items():
                if field.get("type") in ("integer", "number"):
                    yield path, name


def test_true_is_no_number(running):
    needed = {"pairs": [{"item": 1, "rival": 2}], "items": [1, 2], "rivals": [3], "item": 1, "rival": 2}
    fields = set()
    parts = running.service.app.openapi()["components"]["schemas"]
    for path, name in number_fields(running.service):
        verb = path.rsplit("/", 1)[1]
        body = {"question": "Ask", "visitor": "VisitorQuestion"}.get(verb, verb.capitalize())
        question = {field: needed[field] for field in parts[body].get("required", ())}
        assert running.client.post(path, json=question).status_code == 200, path
        for value in (True, False):
            refused = running.client.post(path, json={**question, name: value})
            words = f"{name}: give a number, not {str(value).lower()}"
            assert refused.status_code == 422 and refused.json()["error"] == words, (path, refused.text)
        fields.add((verb, name))
    assert {("recommend", "N"), ("recommend", "candidates"), ("groups", "minimum"), ("prefer", "level")} <= fields
    for ids in ({"user": True}, {"likes": [True]}, {"comparisons": [{"winner": True, "loser": 2}]}):
        refused = running.client.post("/v1/recommend", json=ids)
        assert refused.status_code == 422 and "an id is a whole number" in refused.json()["error"]


# -- another model in place -------------------------------------------------------------------------------------------
def test_a_changed_file_answers_and_a_damaged_one_does_not(folder, tmp_path):
    from sadrec.serving import ServeSettings

    path = tmp_path / "served.sad"
    shutil.copy(folder / "model.sad", path)
    store = Reloader(ServeSettings(str(path)), Metrics())
    asyncio.run(store.load())
    first = store.current
    assert not asyncio.run(store.look()) and store.current is first

    path.write_bytes((folder / "other.sad").read_bytes()[:-100])
    assert not asyncio.run(store.look()) and store.current is first
    damaged = bytearray((folder / "other.sad").read_bytes())
    damaged[-50] ^= 255
    path.write_bytes(damaged)
    assert not asyncio.run(store.look()) and store.current is first
    path.unlink()
    assert not asyncio.run(store.look()) and store.current is first
    assert store.metrics.reload_errors._value.get() == 2 and store.metrics.reloads._value.get() == 0
    # What was loaded does not depend on the file, whatever became of it.
    np.testing.assert_array_equal(first.model.recommend(7)[0], SAD.load(folder / "model.sad").recommend(7)[0])

    shutil.copy(folder / "other.sad", path)
    assert asyncio.run(store.look())
    assert store.current.digest == checksum_of(folder / "other.sad") != first.digest
    assert store.metrics.reloads._value.get() == 1


def test_a_pipe_in_the_place_of_the_model_leaves_the_old_one_and_is_said(folder, tmp_path):
    """The service waited for it and never answered again."""
    from fastapi.testclient import TestClient

    from sadrec.serving import ServeSettings, create_app

    path = tmp_path / "served.sad"
    shutil.copy(folder / "model.sad", path)
    service = create_app(ServeSettings(str(path)), load_warm(ServeSettings(str(path))))
    client, store = TestClient(service), service.reloader

    def said():
        return client.get("/readyz").json()["problem"], "sadrec_files_unusable 1.0" in client.get("/metrics").text

    assert said() == (None, False)
    path.unlink()
    os.mkfifo(path)
    assert not asyncio.run(store.look())
    problem, counted = said()
    assert "is a folder, a pipe or a device" in problem and str(path) in problem and counted
    assert client.get("/v1/recommend?user=7").status_code == client.get("/readyz").status_code == 200
    path.unlink()
    assert not asyncio.run(store.look()) and "there is no file" in said()[0]
    shutil.copy(folder / "other.sad", path)
    assert asyncio.run(store.look()) and said() == (None, False)
    assert store.current.digest == checksum_of(folder / "other.sad")


def test_a_disk_that_does_not_answer_holds_up_nobody(folder, tmp_path, monkeypatch):
    from sadrec.serving import ServeSettings, reload

    path, answers = tmp_path / "served.sad", threading.Event()
    shutil.copy(folder / "model.sad", path)
    usual = reload.load_warm
    current = Reloader(ServeSettings(str(path), reload_seconds=0.01), Metrics())
    monkeypatch.setattr(reload, "LOAD_SECONDS", 0.2)
    monkeypatch.setattr(reload, "load_warm", lambda settings: answers.wait() and usual(settings))

    async def watched():
        watching, rounds = asyncio.create_task(current.watch()), 0
        while current.problem is None:
            await asyncio.sleep(0.01)  # the loop goes on
            rounds += 1
        assert current.current is None and rounds > 5
        monkeypatch.setattr(reload, "LOAD_SECONDS", 60.0)
        answers.set()
        while current.current is None:
            await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(asyncio.wait_for(watched(), 60))
    assert current.problem is None and current.metrics.reload_errors._value.get() >= 1


def test_whoever_looks_at_files_ends_when_the_service_does():
    """A cancellation that met the end of a look was lost, and the service waited for it."""
    from sadrec.serving.reload import in_thread, repeatedly

    async def ended(delay):
        watching = asyncio.create_task(repeatedly(lambda: in_thread(lambda: None, 10), 0.0001))
        await asyncio.sleep(delay)
        watching.cancel()
        await asyncio.wait([watching], timeout=10)
        return watching.done()

    async def all_ended():
        return [await ended(0.00001 * number) for number in range(200)]

    assert all(asyncio.run(all_ended()))


def test_a_pipe_in_the_place_of_the_keys_allows_nobody(tmp_path):
    path = tmp_path / "keys"
    key = new_key(path, "ann")
    keys = Keys(path)
    path.unlink()
    os.mkfifo(path)
    keys.refresh()
    assert not keys.allow([(b"x-api-key", key.encode())])
    with pytest.raises(ValueError, match="is a folder, a pipe or a device"):
        EventLog(path)


def test_what_goes_with_a_model_must_fit_it(settings):
    with pytest.raises(ValueError, match="needs a column of ids"):
        load_warm(settings(items="comparisons.csv"))


# -- people's answers -------------------------------------------------------------------------------------------------
def test_answers_are_kept_and_can_be_fitted(started, tmp_path):
    log = tmp_path / "logs" / "answers.jsonl"
    running = started(log=str(log))
    events = [{"user": "ann", "winner": 1, "loser": 2}, {"user": "bob", "winner": "3", "loser": 1}]
    answer = running.client.post("/v1/events", json={"events": events})
    assert answer.json() == {"model": running.served.digest, "kept": 2}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["user"], line["winner"], line["loser"]) for line in lines] == [("ann", 1, 2), ("bob", 3, 1)]
    assert all(line["model"] == running.served.digest for line in lines)
    assert Comparisons.read(log).to_frame().rows() == [("ann", 1, 2), ("bob", 3, 1)]
    for wrong, status in (({"winner": 1, "loser": 1}, 422), ({"winner": 1, "loser": 999}, 404)):
        refused = running.client.post("/v1/events", json={"events": [events[0], {"user": "x", **wrong}]})
        assert refused.status_code == status
    assert len(log.read_text().splitlines()) == 2  # all of a request or nothing


def test_without_a_log_answers_are_refused(clicks):
    answer = clicks.client.post("/v1/events", json={"events": [{"user": "ann", "winner": 1, "loser": 2}]})
    assert answer.status_code == 422 and "--log" in answer.json()["error"]


def test_a_log_that_was_moved_is_begun_anew(tmp_path):
    path = tmp_path / "a.jsonl"
    log, other = EventLog(path), EventLog(path)
    log.append([{"n": 1}])
    path.rename(tmp_path / "a.1.jsonl")
    log.append([{"n": 2}])
    other.append([{"n": 3}])
    assert (tmp_path / "a.1.jsonl").read_text() == '{"n":1}\n'
    assert path.read_text() == '{"n":2}\n{"n":3}\n'


def test_a_log_is_put_aside_at_its_size_by_several_writers_without_a_loss(tmp_path):
    path = tmp_path / "a.jsonl"
    logs = [EventLog(path, 200) for _ in range(3)]
    for number in range(100):
        logs[number % 3].append([{"n": number}])
    files = sorted(tmp_path.iterdir())
    assert len(files) > 4 and all(file.stat().st_size <= 200 for file in files)
    assert sorted(json.loads(line)["n"] for file in files for line in file.read_text().splitlines()) == list(range(100))


def test_a_line_that_was_cut_does_not_swallow_the_next(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\n{"n":')
    log = EventLog(path)
    log.append([{"n": 3}])
    with path.open("a") as file:
        file.write('{"n":')  # by another worker, before the disk was full
    log.append([{"n": 4}])
    assert path.read_text().splitlines() == ['{"n": 1}', '{"n":', '{"n":3}', '{"n":', '{"n":4}']


@pytest.fixture
def full(monkeypatch):
    """A switch: a disk that takes some bytes more, and then none."""
    disk, usual = SimpleNamespace(full=False), os.write

    def write(handle, data):
        if not disk.full:
            return usual(handle, data)
        if len(data) > 10:
            return usual(handle, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    return disk


def test_a_full_disk_leaves_no_half_line(tmp_path, full):
    path = tmp_path / "a.jsonl"
    log = EventLog(path)
    log.append([{"n": 1}])
    full.full = True
    with pytest.raises(OSError, match="No space left"):
        log.append([{"number": 2}, {"number": 3}])
    assert path.read_text() == '{"n":1}\n'
    full.full = False
    log.append([{"n": 4}])
    assert path.read_text() == '{"n":1}\n{"n":4}\n'


def test_answers_that_find_the_disk_full_are_refused_in_words_and_others_are_in_the_file(started, tmp_path, full):
    running = started(log=str(tmp_path / "answers.jsonl"))
    kept = []
    for number in range(6):
        full.full = number % 3 == 2
        user = f"user {number}"
        answer = running.client.post("/v1/events", json={"events": [{"user": user, "winner": 1, "loser": 2}] * 2})
        if full.full:
            assert answer.status_code == 507
            assert "the answers were not kept (" in answer.json()["error"] and "No space left" in answer.json()["error"]
            assert answer.json()["model"] == running.served.digest
        else:
            assert answer.status_code == 200
            kept += [user] * 2
    assert [json.loads(line)["user"] for line in (tmp_path / "answers.jsonl").read_text().splitlines()] == kept


def test_a_log_that_nobody_reads_holds_up_no_process():
    """Tracebacks filled the pipe of the standard error; the worker waited, and had to be killed."""
    program = (
        "import logging; from sadrec.serving.supervisor import log_without_waiting; log_without_waiting()\n"
        "for _ in range(1000): logging.error('x' * 5000)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    try:
        assert process.wait(60) == 0
        assert b"ERROR root: xxx" in process.stderr.read()
    finally:
        process.kill()
        process.stderr.close()


# -- the table of items -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("long.csv", "item,title\n" + "x" * 300 + ",Dish\n"),
        ("lines.csv", '"first\nsecond",other\n1,2\n'),
        ("null.csv", "item,title\n1,Dish\n,Nothing\n"),
        ("bomb.csv", gzip.compress(b"item,title\n" + b"\n" * 10**6, mtime=0)),
        ("cut.csv", gzip.compress(b"item,title\n1,Dish\n", mtime=0)[:-9]),
    ],
)
def test_a_table_of_items_that_cannot_be_used_is_told_in_one_line_with_its_name(
    folder, settings, monkeypatch, name, content
):
    monkeypatch.setattr(_text, "FREE", 1000)  # what any file may unpack to
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=f"{name}: the table of items cannot be read") as caught:
        load_warm(settings(items=name))
    assert "\n" not in str(caught.value)


def test_a_packed_table_of_items_names_them(folder, settings):
    (folder / "packed.csv.gz").write_bytes(gzip.compress(b"item,title\n3,Soup\n", mtime=0))
    assert load_warm(settings(items="packed.csv.gz")).items.titles[3] == "Soup"


def test_the_interface_says_how_a_key_is_sent(tmp_path):
    from sadrec.serving import ServeSettings, create_app, new_key

    new_key(tmp_path / "keys", "ann")
    ways = {}
    for keys in (None, str(tmp_path / "keys")):
        schema = create_app(ServeSettings("none", keys=keys)).app.openapi()
        assert set(schema["components"]["securitySchemes"]) == {"bearer", "header"}
        ways[keys] = [schema["paths"][path]["get"].get("security") for path in ("/v1/describe", "/livez")]
    assert list(ways.values()) == [[None, None], [[{"bearer": []}, {"header": []}], None]]
