"""The explorer in a real browser: Debian's Chromium, driven by Playwright."""

import gzip
import json
import os
import re
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import polars as pl
import pytest

import sadrec.serving
from sadrec import BPR, SAD, Comparisons
from sadrec.cli.demo import _HOW, _WHAT
from sadrec.data import simulate
from sadrec.ranking import contradictions, cyclic_triads, nemeses, places, spoilers

EXPLORER = Path(sadrec.serving.__file__).parent / "explorer"
ARENA = ("leaderboard", "matchups", "counters", "rings", "ask")
PANELS = (*ARENA, "ring", "slate", "nemesis", "duel")
SIZES = {"narrow and dark": (360, 740, "dark"), "wide and light": (1440, 900, "light")}
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</bdi><script>alert(2)</script>",
    "מרק עוף חם",
    "Pie " * 60,
    "&amp; 'q' \"q\"",
]


# -- what is shipped --------------------------------------------------------------------------------------------------


def test_the_page_is_small_enough_for_a_slow_line():
    sizes = [len(gzip.compress(path.read_bytes())) for path in EXPLORER.iterdir()]
    assert sum(sizes) <= 150_000


def test_data_never_becomes_markup_and_nothing_foreign_is_named():
    for path in EXPLORER.iterdir():
        text = path.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path
        )
        addresses = set(re.findall(r"https?://[\w./-]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path


def test_the_policy_of_the_page_allows_nothing_inline(service):
    with urlopen(service.address, timeout=10) as answer:
        policy = answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-cache"
    assert "default-src 'none'" in policy and "script-src 'self'" in policy
    assert "unsafe" not in policy and "*" not in policy and "https:" not in policy


# -- a browser and a service ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip("playwright.sync_api", reason="the explorer's tests need `pip install playwright`")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no Chromium to show the explorer in: apt-get install chromium")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory):
    """A folder with models of people who have some taste in dishes in common."""
    folder = tmp_path_factory.mktemp("kitchen")
    people = simulate("sim2", n=150, m=60, k=4, comparisons_per_user=120, common=1.0, seed=2)
    train, held_out = people.comparisons.split(test=0.2, seed=0)
    model = SAD(factors=4, iterations=25).fit(train, show_progress=False)
    model.save(folder / "model.sad")
    BPR(factors=4, iterations=25).fit(train, show_progress=False).save(folder / "bpr.sad")
    rivals = np.sqrt(np.maximum(model.rival_factors, 0.0))
    SAD.from_factors(model.user_factors, model.item_factors, rivals).save(folder / "other.sad")
    names = [f"{how} {what}".capitalize() for what, how in zip(_WHAT * 4, _HOW * 3, strict=True)]
    pl.DataFrame({"item": np.arange(60), "title": names}).write_csv(folder / "items.csv")
    pl.DataFrame({"item": np.arange(60), "title": HOSTILE * 12}).write_csv(folder / "hostile.csv")
    held_out.to_frame().write_csv(folder / "test.csv")
    return folder


@contextmanager
def serving(folder, model="model.sad", items="items.csv", **options):
    """Serve a model on a free port of this machine."""
    import uvicorn

    from sadrec.serving import ServeSettings, create_app
    from sadrec.serving.reload import load_warm

    paths = {name: str(folder / value) for name, value in options.items()}
    paths |= {} if items is None else {"items": str(folder / items)}
    settings = ServeSettings(str(folder / model), reload_seconds=0, **paths)
    service = create_app(settings, load_warm(settings))
    server = uvicorn.Server(uvicorn.Config(service, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
    service.address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    yield service
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def service(kitchen):
    with serving(kitchen, log="answers.jsonl") as service:
        yield service


@pytest.fixture(scope="module")
def model(kitchen):
    return SAD.load(kitchen / "model.sad")


@pytest.fixture
def opened(browser):
    """A function that opens a page; at the end of the test nothing may have gone wrong in any of them."""
    contexts, wrong = [], []

    def open_page(service, address="#/duel", size="wide and light", **changed):
        width, height, scheme = SIZES[size]
        viewport = {"width": width, "height": height}
        options = {"viewport": viewport, "color_scheme": scheme, "reduced_motion": "reduce", **changed}
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: message.type in ("error", "warning") and wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith(service.address) or wrong.append(f"foreign: {sent.url}"))
        page.goto(f"{service.address}/{address}")
        ready(page)
        return page

    open_page.wrong = wrong
    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def ready(page, panel=None):
    page.wait_for_selector(f"main{'' if panel is None else f'[data-panel={panel}]'}[data-ready]")
    page.wait_for_selector("[aria-busy=true]", state="detached")


def numbers(page, what):
    """The numbers of a kind on the page, in order; what people read must be a rounding of them."""
    values = page.locator(f"main data[data-what={what}]").evaluate_all(
        "all => all.map(e => [Number(e.value), e.innerText])"
    )
    for value, shown in values:
        read = re.sub(r"[^\d.\u2212]", "", shown).replace("\u2212", "-")
        if shown.startswith(("over", "under")):
            assert abs(value - (shown[0] == "o")) < 0.0051
        elif read:
            assert float(read) == pytest.approx(
                100 * value if "%" in shown else value, abs=0.51 if "%" in shown else 0.051
            )
    return [value for value, _ in values]


def answer(page, key="ArrowLeft", times=1):
    for _ in range(times):
        before = page.locator(".count").inner_text()
        page.keyboard.press(key)
        page.wait_for_function("before => document.querySelector('.count').innerText !== before", arg=before)
        page.wait_for_selector("[aria-busy=true]", state="detached")


def answers_of(page):
    return json.loads(page.evaluate("new URLSearchParams(location.hash.split('?')[1] ?? '').get('answers')") or "[]")


def said_by(model, pairs):
    winners, losers = np.array(pairs).T
    return Comparisons.from_indices(np.zeros(len(pairs), int), winners, losers, users=["visitor"], items=model.items)


# -- every panel, at both widths, in both themes -----------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_no_panel_breaks_a_rule_of_accessibility_or_runs_out_of_the_window(opened, service, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python").Axe()
    page = opened(service, "#/duel", size)
    answer(page, times=6)
    page.get_by_role("button", name="Show my taste").click()
    for panel in PANELS:
        page.evaluate("panel => { if (!location.hash.startsWith('#/' + panel)) location.hash = '#/' + panel; }", panel)
        ready(page, panel)
        report = axe.run(page, options={"resultTypes": ["violations"]})
        assert report.violations_count == 0, report.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), panel
        assert page.locator("h1").count() == 1 and page.locator("main").count() == 1
        assert page.locator("nav [aria-current=page]").get_attribute("href") == f"#/{panel}"


@pytest.mark.parametrize("size", SIZES)
def test_titles_of_any_kind_are_shown_as_text(opened, browser, kitchen, size):
    with serving(kitchen, items="hostile.csv") as service:
        page = opened(service, "#/duel", size)
        answer(page, times=5)
        page.get_by_role("button", name="Show my taste").click()
        for panel in PANELS:
            page.evaluate(
                "panel => { if (!location.hash.startsWith('#/' + panel)) location.hash = '#/' + panel; }", panel
            )
            ready(page, panel)
            assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), panel
        assert page.get_by_text(HOSTILE[0]).count() > 0
        assert page.evaluate("[...document.querySelectorAll('bdi')].every(e => !e.children.length)")


# -- every number is the library's -------------------------------------------------------------------------------------


def test_duels_show_the_numbers_of_the_library(opened, service, model):
    from sadrec.serving.verbs.interviews import _RANKED

    page = opened(service)
    assert numbers(page, "bits")[0] > 0.5
    answer(page, times=3)
    answer(page, "ArrowRight", times=4)
    page.get_by_role("button", name="Show my taste").click()
    pairs = answers_of(page)
    assert len(pairs) == 7 and numbers(page, "answers") == [7]
    visitor = model.visitor(comparisons=said_by(model, pairs))
    ids, scores = visitor.recommend("visitor", N=10, filter_already_liked_items=False)
    shown = page.locator(".places li").evaluate_all("all => all.map(e => JSON.parse(e.dataset.item))")
    assert shown == ids.tolist()
    one, other = np.triu_indices(10, 1)
    sure = visitor.probability("visitor", ids[one], ids[other]).mean()
    assert numbers(page, "sure") == numbers(page, "taste_sure") == pytest.approx([sure])
    best, _ = visitor.recommend("visitor", N=_RANKED, filter_already_liked_items=False)
    rows = (visitor.state.items.positions(some) for some in (ids, best))
    lower, upper, first = map(np.ndarray.tolist, places(visitor.state.belief, *rows))
    assert numbers(page, "place_lower") == lower and numbers(page, "place_upper") == upper
    assert numbers(page, "first") == first[:1]
    assert numbers(page, "score") == pytest.approx(scores[:5].tolist())
    assert numbers(page, "taste_intransitivity") == pytest.approx([visitor.intransitivity("visitor")])
    pair = [
        json.loads(text) for text in page.evaluate("[...document.querySelectorAll('.card')].map(e => e.dataset.item)")
    ]
    row = visitor.ask_next("visitor", pair)
    assert numbers(page, "bits") == pytest.approx([row["bits"][0]])


def test_a_ring_shows_the_numbers_of_the_library(opened, service, model):
    page = opened(service, "#/ring?user=7")
    cycle = model.cycles(7)[0]
    assert numbers(page, "margin") == pytest.approx(cycle.margins.tolist())
    chances = model.probability(7, cycle.path, np.roll(cycle.path, -1))
    assert numbers(page, "probability") == pytest.approx(chances.tolist())
    triads = cyclic_triads(model.tournament(7))
    assert numbers(page, "cyclic_triads") == [triads.count] and numbers(page, "triads") == [triads.total]
    assert numbers(page, "intransitivity") == pytest.approx([model.intransitivity(7)])
    weakest = int(chances.argmin())
    assert page.locator(".steps li").nth(weakest).inner_text().endswith("weakest link")
    assert page.locator(".ring .weak .line").count() == 1
    page.locator(".steps button").first.click()
    why = model.explain(7, cycle.path[0], cycle.path[1])
    parts = sorted(why.contributions, key=abs, reverse=True)[:4]
    assert numbers(page, "contribution") == pytest.approx(parts)


def test_a_ring_tells_how_often_a_step_is_answered_so_from_how_sure_its_direction_is(opened, service, model):
    one, two, three = model.cycles(7)[0].path[:3].tolist()
    pairs = 4 * [[one, two], [two, three], [three, one]]
    page = opened(service, f"#/ring?you={json.dumps(pairs)}")
    visitor = model.visitor(comparisons=said_by(model, pairs))
    cycle = visitor.cycles("visitor")[0]
    chances = visitor.probability("visitor", cycle.path, np.roll(cycle.path, -1))
    assert numbers(page, "probability") == pytest.approx(chances.tolist())
    assert len(numbers(page, "cycle_probability")) == 1
    text = page.locator("main").inner_text()
    assert "preferred in" in text and "sure that all steps point this way" in text and "at once" not in text
    weakest = page.locator(".steps li").evaluate_all("all => all.findIndex(e => e.innerText.includes('weakest'))")
    assert weakest == chances.argmin()
    assert "known exactly" in page.locator("footer").inner_text()


def test_a_ring_runs_through_an_item(opened, service, model):
    from sadrec.ranking import cycle_through

    around = model.cycles(7)[0].path[1]
    page = opened(service, f"#/ring?user=7&item={around}")
    near = model.similar_items(around, 50)[0]
    among = list(dict.fromkeys([*near.tolist(), int(around)]))
    cycle = cycle_through(model.tournament(7, among), around)
    assert numbers(page, "margin") == pytest.approx(cycle.margins.tolist())
    page.get_by_role("button", name="any item instead").click()
    page.wait_for_function("() => !location.hash.includes('item')")


def test_a_slate_shows_the_numbers_of_the_library(opened, service, model):
    items = [3, 8, 12, 30]
    page = opened(service, f"#/slate?user=7&items={json.dumps(items)}")
    order = model.rank(7, items, "margin", reference=items).items
    game = model.tournament(7, items)
    for method in ("margin", "wins", "markov", "nash"):
        ranking = model.rank(7, items, method, **({"reference": items} if method == "margin" else {}))
        scores = dict(zip(ranking.items.tolist(), ranking.scores, strict=True))
        if method == "margin":  # a ranking multiplies in single precision, a slate averages margins
            assert game.mean_margins() == pytest.approx([scores[item] for item in items], abs=1e-6)
            scores = dict(zip(items, game.mean_margins(), strict=True))
        assert numbers(page, f"slate_{method}") == pytest.approx([scores[item] for item in order.tolist()], abs=1e-9)
    page.locator("summary").click()
    chances = [model.probability(7, one, other) for one in items for other in items if one != other]
    assert numbers(page, "slate_probability") == pytest.approx(chances)


def test_winners_of_a_slate_that_tie_are_said_to(opened, kitchen):
    """A cycle of three equal margins is tied by every method; for another user the first is a little larger."""
    items, rivals = [[1, -1, 0.002], [0, 0, 0], [-1, 1, 0]], [[1, 1, 1], [2, 1, 1], [0, 1, 1]]
    users = [[1, 1, 0], [1, 1, 1]]
    SAD.from_factors(users, items, rivals, items=["rock", "scissors", "paper"]).save(kitchen / "cycle.sad")
    slate = 'items=["rock","scissors","paper"]'
    with serving(kitchen, "cycle.sad", None) as service:
        page = opened(service, f"#/slate?user=0&{slate}")
        assert page.locator(".big").inner_text() == "rock, scissors and paper are tied"
        assert page.locator("td.winner").count() == 12 and page.get_by_text("All four ways agree").count() == 0
        assert all(text.endswith("tied") for text in page.locator("td.winner").all_inner_texts())
        page = opened(service, f"#/slate?user=1&{slate}")
        assert page.locator(".big").inner_text() == "No agreement on the winner"
        assert len(numbers(page, "slate_nash")) == 3
        nash = page.locator(
            ".scores td:nth-child(5)"
        ).all_inner_texts()  # so many digits that the winner is told from the rest
        assert sum("★" in text for text in nash) == 1 and not any("tied" in text for text in nash)
        assert max(nash).startswith("33.4") and "★" in max(nash)
        assert [text.endswith("tied") for text in page.locator(".scores td:nth-child(3)").all_inner_texts()] == 3 * [
            True
        ]
        assert "tied by wins" in page.locator("main").inner_text()


def test_what_dethrones_a_winner_is_what_the_library_says(opened, service, model):
    for user in model.users[:40]:
        best = model.recommend(user, N=15)[0].tolist()
        expected = spoilers(model.tournament(user, best), 5, "wins")
        if expected:
            break
    page = opened(service, f"#/slate?user={user}&items={json.dumps(best[:5])}")
    titles = {one["item"]: one["title"] for one in service.reloader.current.items.entries}
    text = page.locator(".spoilers").inner_text()
    for one in expected[:3]:
        assert titles[one.item] in text and titles[one.winner_with] in text
    put = page.locator(".spoilers button").first
    title = put.inner_text().removeprefix("Put ").removesuffix(" on")
    put.click()
    page.wait_for_function("title => document.querySelector('.chips').innerText.includes(title)", arg=title)


def test_a_nemesis_shows_the_numbers_of_the_library(opened, service, model):
    page = opened(service, "#/nemesis")
    popular = [nemeses(model.state.parameters, item) for item in model.recommend(None, N=3)[0]]
    report = next((one for one in popular if one.shares[0] > 0.5), popular[0])
    assert numbers(page, "share") == pytest.approx(report.shares.tolist())
    assert numbers(page, "nemesis_margin") == pytest.approx(report.margins.tolist(), abs=1e-5)
    assert numbers(page, "users") == [report.users]
    page.locator(".duels button").first.click()
    page.wait_for_function("item => location.hash.endsWith('item=' + item)", arg=int(report.items[0]))


# -- how it behaves ----------------------------------------------------------------------------------------------------


def test_all_of_it_works_with_keys_alone_and_focus_is_seen(opened, service):
    page = opened(service)

    def press_until(selector, key="Tab", most=40):
        for _ in range(most):
            page.keyboard.press(key)
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"{selector} is not reached")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    press_until("button.card")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.count').innerText.startsWith('1 answer')")
    page.wait_for_function("() => document.activeElement.matches('button.card')")  # the next question has the focus
    press_until("a[href='#/slate']", "Shift+Tab")
    page.keyboard.press("Enter")
    ready(page, "slate")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    press_until(".add input")
    before = page.locator(".chips li").count()
    there = " ".join(page.locator(".chips .title").all_inner_texts()).lower()
    page.keyboard.type(next(what for what in _WHAT if what.lower() not in there))  # the model says what leads
    page.wait_for_selector(".add [role=option]")
    page.keyboard.press("ArrowDown")
    active = page.locator(".add input").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    page.wait_for_function("count => document.querySelectorAll('.chips li').length === count", arg=before + 1)
    press_until(".chips button")
    page.keyboard.press("Enter")
    page.wait_for_function("count => document.querySelectorAll('.chips li').length === count", arg=before)
    press_until("a[href='#/ring']", "Shift+Tab")
    page.keyboard.press("Enter")
    ready(page, "ring")
    press_until("input[type=radio]")
    page.keyboard.press("ArrowDown")  # arrows stay among the choices, Tab goes into the field
    assert page.evaluate("document.activeElement.value") == "user" and page.locator(".who [role=combobox]").is_visible()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => location.hash.includes('you=') && document.activeElement.value === 'you'")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.value") == "user"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('.who [role=combobox]')")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".who [role=option]")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('user=')")
    assert page.evaluate("document.activeElement.matches('.who [role=combobox]')")  # drawn anew, and still there
    press_until(".controls > .combobox input")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".controls > .combobox [role=option]")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('item=')")
    assert page.evaluate("document.activeElement.innerText") == "any item instead"


def test_answers_are_kept_in_the_address_and_can_be_undone(opened, service):
    page = opened(service)
    answer(page, times=3)
    first = answers_of(page)
    again = opened(service, page.evaluate("location.hash"))
    assert answers_of(again) == first and numbers(again, "answers") == [3]
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("() => document.querySelector('.count').innerText.startsWith('2 answers')")
    assert answers_of(page) == first[:2]
    shown = page.locator(".cards").inner_text()
    page.get_by_role("button", name="Neither").click()
    page.wait_for_function("shown => document.querySelector('.cards').innerText !== shown", arg=shown)
    page.get_by_role("button", name="Start over").click()
    page.wait_for_function("() => document.querySelector('.count').innerText.startsWith('About 20')")
    assert answers_of(page) == []


def test_the_list_changes_visibly_and_is_told(opened, service):
    page = opened(service, reduced_motion="no-preference")
    answer(page)
    assert page.locator(".moved").count() > 0
    assert page.locator(".status[role=status]").inner_text().count(".") >= 2
    still = opened(service)
    answer(still)
    assert still.evaluate("document.getAnimations().length") == 0


def test_twenty_answers_end_with_your_taste(opened, service, model):
    page = opened(service)
    rng = np.random.default_rng(0)
    for _ in range(20):
        answer(page, str(rng.choice(["ArrowLeft", "ArrowRight"])))
    page.wait_for_selector(".taste h2")
    assert numbers(page, "taste_sure")
    cycles = model.visitor(comparisons=said_by(model, answers_of(page))).cycles("visitor", 50)
    assert page.locator(".taste .ring").count() == min(len(cycles), 1)
    page.get_by_role("link", name="Put the five on a slate").click()
    ready(page, "slate")
    assert page.locator(".chips li").count() == 5
    assert page.locator("input[value=you]").is_checked()


def test_contradictions_are_told_and_asked_again(opened, service, model):
    cycle = model.cycles(7)[0].path[:3].tolist()
    pairs = [[cycle[0], cycle[1]], [cycle[1], cycle[2]], [cycle[2], cycle[0]], [50, 51], [51, 50]]
    page = opened(service, f"#/duel?answers={json.dumps(pairs)}")
    visitor = model.visitor(comparisons=said_by(model, pairs))
    expected = contradictions(visitor.state.belief, *visitor.state.items.positions(np.array(pairs)).T)
    assert page.locator(".doubts li").count() == len(expected) == 2
    assert numbers(page, "contradiction") == pytest.approx([one.probability for one in expected if len(one.path) > 2])


def test_answers_are_logged_when_the_visitor_leaves_and_none_that_was_undone(opened, service, kitchen):
    page, sent = opened(service), []
    page.on("request", lambda one: one.url.endswith("/events") and sent.append(one.post_data_json["events"]))
    answer(page, times=3)
    for left in (2, 1):
        page.get_by_role("button", name="Undo").click()
        page.wait_for_function(
            "left => document.querySelector('.count').innerText.startsWith(left + ' answer')", arg=left
        )
    answer(page, "ArrowRight", times=2)
    assert sent == []
    pairs = answers_of(page)
    with page.expect_response("**/v1/events"):
        page.evaluate(
            "Object.defineProperty(document, 'visibilityState', { get: () => 'hidden', configurable: true });"
            "document.dispatchEvent(new Event('visibilitychange')); delete document.visibilityState"
        )
    assert page.get_by_role("button", name="Undo").count() == 0  # what is kept cannot be taken back
    answer(page)
    with page.expect_response("**/v1/events"):
        page.get_by_role("link", name="Nemesis").click()
    assert [len(events) for events in sent] == [3, 1]
    lines = [json.loads(line) for line in (kitchen / "answers.jsonl").read_text().splitlines()]
    kept = [[line["winner"], line["loser"]] for line in lines if line["user"] == sent[0][0]["user"]]
    assert kept[:3] == pairs and len(kept) == 4


def test_a_link_to_a_ring_shows_the_same_ring(opened, service):
    page = opened(service, "#/ring")
    page.get_by_label("one user").check()
    page.locator(".who [role=combobox]").fill("11")
    page.get_by_role("option").first.click()
    page.wait_for_function("() => location.hash.includes('user=')")
    ready(page, "ring")
    other = opened(service, page.evaluate("location.hash"))
    assert numbers(other, "margin") == numbers(page, "margin")
    assert other.locator(".who [role=combobox]").input_value() == page.locator(".who [role=combobox]").input_value()


def test_slates_of_one_item_and_of_none(opened, service):
    page = opened(service, "#/slate?items=[3]")
    assert "One item wins against nobody" in page.locator("main").inner_text()
    page.locator(".chips button").click()
    page.get_by_text("The slate is empty").wait_for()


def test_a_question_without_an_answer_is_said_calmly(opened, service):
    page = opened(service, "#/ring", "wide and light")
    page.close()
    context = page.context
    page = context.new_page()
    page.goto(f"{service.address}/#/ring?user=99999")
    page.get_by_role("alert").wait_for()
    assert "99999" in page.get_by_role("alert").inner_text()
    page.get_by_role("button", name="Begin afresh").click()
    page.wait_for_selector("main[data-panel=ring][data-ready=true]")
    for panel, named in (
        ("ring?user=zz", "user zz"),
        ("ring?user=424242", "user 424242"),
        ("slate?user=[1]", "user [1]"),
    ):
        page.goto(f"{service.address}/#/{panel}")
        page.get_by_text(f"There is no {named}.").wait_for()
        assert "POST" not in page.get_by_role("alert").inner_text()
    page.goto(f"{service.address}/#/nemesis?item=zz")
    page.get_by_text("There is no item zz.").wait_for()
    page.goto(f"{service.address}/#/duel?answers=[[1,99999]]")
    page.get_by_role("alert").wait_for()
    page.get_by_role("button", name="Begin afresh").click()
    page.wait_for_selector("main[data-panel=duel][data-ready=true]")


def test_pictures_of_items_are_shown_where_there_are_some(opened, kitchen):
    dot = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw=="
    pl.DataFrame({"item": np.arange(60), "title": "A dish", "picture": dot}).write_csv(kitchen / "pictures.csv")
    with serving(kitchen, items="pictures.csv") as service:
        page = opened(service)
        assert page.locator(".card img").count() == 2
        assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth === 1)")
        assert page.locator(".places img").count() == 10
        for panel, place in (("slate", ".chips img"), ("slate", ".scores img"), ("nemesis", ".duels img")):
            page.goto(f"{service.address}/#/{panel}")
            ready(page, panel)
            assert page.locator(place).count() > 2
        page.goto(f"{service.address}/#/ring?user=7")
        ready(page, "ring")
        assert page.locator(".ring image").count() == page.locator(".ring .node").count() > 2


def test_a_picture_that_cannot_be_had_leaves_no_trace(opened, kitchen):
    gone = "data:image/gif;base64,AAAA"
    pl.DataFrame({"item": np.arange(60), "title": "A dish", "picture": gone}).write_csv(kitchen / "gone.csv")
    with serving(kitchen, items="gone.csv") as service:
        page = opened(service, "#/ring?user=7")
        page.wait_for_selector(".ring .face", state="detached")
        page.goto(f"{service.address}/#/slate")
        ready(page, "slate")
        page.wait_for_function("document.images.length === 0")


@pytest.mark.parametrize("size", SIZES)
def test_the_page_about_the_interface_shows_every_question_without_a_network(opened, service, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python").Axe()
    page = opened(service, "docs", size)
    paths = json.loads(urlopen(f"{service.address}/openapi.json", timeout=10).read())["paths"]
    shown = page.locator("summary code").all_inner_texts()
    assert {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods} <= set(shown)
    page.get_by_text("POST /v1/rank").click()
    page.locator("details[open]").get_by_text("An order of given items.").wait_for()
    assert axe.run(page, options={"resultTypes": ["violations"]}).violations_count == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("kind", ["softmax", "posterior"])
def test_every_panel_of_other_models(opened, kitchen, kind):
    """A model of clicks trained by the softmax, and a model with a posterior beside it."""
    options = {}
    if kind == "softmax":
        rng = np.random.default_rng(0)
        liked = (rng.random((80, 60)) < np.linspace(0.4, 0.02, 60)).astype(np.float32)
        SAD(factors=6, iterations=5, loss="softmax").fit(liked, show_progress=False).save(kitchen / "softmax.sad")
        model = "softmax.sad"
    else:
        from sadrec.posterior import GibbsSAD

        comparisons = Comparisons.read(kitchen / "test.csv")
        fitted = SAD.load(kitchen / "model.sad")
        sides = (
            comparisons.users[comparisons.user_index],
            comparisons.items[comparisons.winner_index],
            comparisons.items[comparisons.loser_index],
        )
        comparisons = Comparisons.from_indices(*sides, users=fitted.users, items=fitted.items)
        GibbsSAD(factors=2, chains=1, draws=20, warmup=20).fit(comparisons, show_progress=False).save(
            kitchen / "p.posterior"
        )
        model, options = "model.sad", {"posterior": "p.posterior"}
    with serving(kitchen, model, **options) as service:
        page = opened(service)
        answer(page, times=2)
        for panel in (*PANELS, "lists"):
            page.goto(f"{service.address}/#/{panel}" + "?user=7" * (panel in ("ring", "slate", "lists")))
            ready(page, panel)
            assert page.get_by_role("alert").count() == 0, panel
            assert "NaN" not in page.locator("main").inner_text()


@pytest.mark.parametrize("size", SIZES)
def test_a_model_of_interactions_opens_with_lists_reasons_and_neighbours(opened, kitchen, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python").Axe()
    liked = np.random.default_rng(0).random((80, 60)) < 0.2
    model = SAD(factors=6, iterations=5).fit(liked, show_progress=False)
    model.save(kitchen / "liked.sad")
    with serving(kitchen, "liked.sad") as service:
        page = opened(service, "", size)
        ids, scores = model.recommend(0, N=10)
        assert numbers(page, "list_score") == pytest.approx(scores.tolist(), abs=1e-5)
        page.locator(".panel-lists .steps button").nth(2).press("Enter")
        page.wait_for_function("id => location.hash.includes('item=' + id)", arg=int(ids[2]))
        ready(page, "lists")
        assert numbers(page, "why_margin") == pytest.approx([model.preference(0, ids[2], ids[3])], abs=1e-5)
        assert numbers(page, "cosine") == pytest.approx(model.similar_items(ids[2], 6)[1][1:].tolist(), abs=1e-5)
        assert axe.run(page, options={"resultTypes": ["violations"]}).violations_count == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("items", [1, 2, 3])
def test_a_model_of_hardly_any_items(opened, kitchen, items):
    """Ids of 64 bits, which a browser would round, in a catalogue that is nearly empty."""
    rng = np.random.default_rng(0)
    factors = [rng.random((rows, 2)) for rows in (4, items, items)]
    ids = 2**60 + 1 + np.arange(items)
    SAD.from_factors(*factors, users=["ann", "bob", "cy", "dan"], items=ids).save(kitchen / "few.sad")
    with serving(kitchen, "few.sad", None) as service:
        page = opened(service)
        if items > 1:
            answer(page)
            assert {int(one) for one in answers_of(page)[0]} <= set(ids.tolist())
        for panel in PANELS:
            page.evaluate(
                "panel => { if (!location.hash.startsWith('#/' + panel)) location.hash = '#/' + panel; }", panel
            )
            ready(page, panel)
            assert page.get_by_role("alert").count() == 0, panel


def test_a_service_that_is_away_is_asked_again(opened, service):
    page = opened(service)
    page.context.route("**/v1/visitor", lambda route: route.fulfill(status=503, body="{}"))
    page.keyboard.press("ArrowLeft")
    page.get_by_text("The service does not answer").wait_for()
    page.context.unroute("**/v1/visitor")
    page.get_by_text("The service is back").wait_for()
    page.wait_for_function("() => document.querySelector('.count').innerText.startsWith('1 answer')")
    opened.wrong[:] = [line for line in opened.wrong if "503" not in line]  # the browser tells so itself


def test_a_model_that_is_exchanged_is_said_and_shown(opened, kitchen):
    from sadrec.serving import ServeSettings
    from sadrec.serving.loaded import Loaded

    with serving(kitchen) as service:
        page = opened(service, "#/nemesis?item=3")
        before = numbers(page, "popularity")
        other = ServeSettings(str(kitchen / "other.sad"), items=str(kitchen / "items.csv"))
        service.reloader.current = Loaded.load(other)
        page.locator(".choices button").first.click()
        page.get_by_text("A new model is served").wait_for()
        page.wait_for_function(
            "old => { const now = document.querySelector('data[data-what=popularity]');"
            " return now && Number(now.value) !== old; }",
            arg=before[0],
        )
        other = SAD.load(kitchen / "other.sad")
        item = json.loads(page.evaluate("location.hash").rpartition("=")[2])
        place = other.items.tolist().index(item)
        popularity = other.state.belief.average.scores([0])[0][place]
        assert numbers(page, "popularity") == pytest.approx([popularity], abs=1e-5)


def test_a_model_without_cycles_says_so(opened, kitchen):
    with serving(kitchen, "bpr.sad") as service:
        page = opened(service, "#/ring")
        assert "No cycle here" in page.locator("main").inner_text()
        assert "This model has T = 1" in page.locator("#notice").inner_text()
        page.get_by_role("link", name="Slate").click()
        ready(page, "slate")
        assert "changes the winner without outranking it" in page.locator(".spoilers").inner_text()


def test_a_service_with_keys_asks_for_one(opened, kitchen, browser):
    from sadrec.serving import new_key

    key = new_key(kitchen / "keys", "the explorer")
    with serving(kitchen, keys="keys") as service:
        page = browser.new_context().new_page()
        page.goto(f"{service.address}/")
        for wrong in ("sadrec_wrong", "no header holds 鍵"):
            page.get_by_label("This service asks for an API key").fill(wrong)
            page.keyboard.press("Enter")
            page.wait_for_function("() => document.querySelector('.key input')?.value === ''")
            page.get_by_role("alert").get_by_text("That key is not known.").wait_for()
            assert page.evaluate("sessionStorage.getItem('sadrec-key')") is None
        page.get_by_label("This service asks for an API key").fill(key)
        page.keyboard.press("Enter")
        ready(page)
        assert page.locator(".board tbody tr").count() == 60 and page.get_by_role("alert").count() == 0
        assert page.evaluate("sessionStorage.getItem('sadrec-key')") == key
        assert key not in page.evaluate("location.href")
        page.context.close()


# -- pictures for the documents ----------------------------------------------------------------------------------------


def test_screenshots(opened, service, tmp_path):
    """Write the pictures of docs/images when SADREC_SCREENSHOTS names that folder (`make screenshots`)."""
    folder = Path(os.environ.get("SADREC_SCREENSHOTS", tmp_path))
    options = {"viewport": {"width": 1100, "height": 1150}, "device_scale_factor": 0.75}
    page = opened(service, **options)
    for key in "LRLLRLLLRL":
        answer(page, "ArrowLeft" if key == "L" else "ArrowRight")
    for panel in ("duel", "leaderboard", "ring", "slate", "nemesis"):  # the duel is open, and has answers
        if panel != "duel":
            page.goto(f"{service.address}/#/{panel}" + "?user=7" * (panel == "ring"))
            ready(page, panel)
        page.evaluate("document.activeElement.blur()")
        page.screenshot(path=folder / f"explorer-{panel}.png")
    for path in folder.glob("explorer-*.png"):
        assert 10_000 < path.stat().st_size < 150_000


# -- an arena ---------------------------------------------------------------------------------------------------------


def test_a_model_of_comparisons_opens_with_its_leaderboard(opened, service, model):
    page = opened(service, "")
    assert page.locator("main").get_attribute("data-panel") == "leaderboard"
    expected = model.leaderboard()
    assert numbers(page, "strength") == pytest.approx(expected["strength"].to_list(), abs=1e-4)
    names = page.locator(".board th[scope=row]").all_inner_texts()
    assert len(names) == len(set(names)) == len(expected)


TASTE = re.compile(r"\btaste|prefer|rather have|\busers?\b|\bperson|\bpeople|somebody", re.IGNORECASE)


def test_a_model_of_matches_speaks_of_matches(opened, kitchen):
    """One judge: decks that played each other. No panel has a word of taste."""
    once = simulate("sim2", n=1, m=12, k=3, seed=3).comparisons
    games = list(zip(once.winner_index.tolist(), once.loser_index.tolist(), strict=True))
    SAD().fit(10 * games + 2 * [(loser, winner) for winner, loser in games], show_progress=False).save(
        kitchen / "decks.sad"
    )
    with serving(kitchen, "decks.sad", None) as service:
        page = opened(service, "#/duel")
        assert page.get_by_role("link", name="Nemesis").count() == 0
        answer(page, times=6)
        page.get_by_role("button", name="Show the ranking").click()
        for panel in PANELS:
            if panel != "nemesis":
                page.evaluate(
                    "panel => { if (!location.hash.startsWith('#/' + panel)) location.hash = '#/' + panel; }", panel
                )
                ready(page, panel)
                assert TASTE.findall(page.locator("body").inner_text()) == [], panel


CONTEST = re.compile(r"\bopponent|\bmatch(es)?\b(?!-)|\bgames?\b|\bdecks?\b|\bplayed", re.IGNORECASE)


def test_a_model_of_taste_does_not_speak_of_matches(opened, service):
    page = opened(service, "#/duel")
    answer(page, times=6)
    page.get_by_role("button", name="Show my taste").click()
    for panel in PANELS:
        page.evaluate("panel => { if (!location.hash.startsWith('#/' + panel)) location.hash = '#/' + panel; }", panel)
        ready(page, panel)
        assert CONTEST.findall(page.locator("body").inner_text()) == [], panel


def test_the_leaderboard_is_sorted_and_searched(opened, service, model):
    page = opened(service, "#/leaderboard")
    page.get_by_role("button", name="Unexplained").press("Enter")
    texts = page.locator(".board td:last-child").all_inner_texts()
    shares = [float(text.split()[0].rstrip("%\u202f")) for text in texts]
    assert shares == sorted(shares, reverse=True)
    name = page.locator(".board th[scope=row]").nth(5).inner_text()
    page.get_by_label("Find an item").fill(name.upper())
    assert page.locator(".board th[scope=row]").first.inner_text() == name


def test_arrow_keys_walk_through_the_match_ups(opened, service, model):
    page = opened(service, "#/matchups")
    page.locator(".heat").focus()
    page.keyboard.press("ArrowRight")
    first, third = model.leaderboard()["item"].gather([0, 2])
    assert numbers(page, "probability") == pytest.approx([model.probability(None, first, third)], abs=1e-3)


@pytest.fixture(scope="module")
def page_file(kitchen, tmp_path_factory):
    """A page in one file, of items whose titles would be markup."""
    from click.testing import CliRunner

    from sadrec.cli import main

    path = tmp_path_factory.mktemp("pages") / "page.html"
    words = ["leaderboard", kitchen / "model.sad", "--titles", kitchen / "hostile.csv", "-o", path]
    answer = CliRunner().invoke(main, list(map(str, words)))
    assert answer.exit_code == 0, answer.output
    return path


@pytest.mark.parametrize("size", list(SIZES))
def test_a_page_in_one_file_works_alone(browser, page_file, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python").Axe()
    width, height, scheme = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page, wrong = context.new_page(), []
    page.on("console", lambda message: message.type in ("error", "warning") and wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda sent: sent.url.startswith("file:") or wrong.append(sent.url))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    for panel in ARENA:
        page.goto(f"{page_file.as_uri()}#/{panel}")
        page.wait_for_selector(f"main[data-panel={panel}] h1")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        report = axe.run(page, options={"resultTypes": ["violations"]})
        assert report.violations_count == 0, report.generate_report()
    assert page.locator("main img").count() == 0
    context.close()
    assert wrong == []


def test_a_page_in_one_file_shows_ten_thousand_items(browser, tmp_path):
    from sadrec.ranking import arena_report
    from sadrec.serving import static_page

    scores = np.random.default_rng(0).standard_normal((10_000, 1))
    belief = SAD.from_factors([[1.0]], scores).state.belief
    table, report = arena_report(belief, np.zeros(1, int), np.arange(10_000).astype(str), 0.9, None)
    (tmp_path / "page.html").write_text(static_page(report, "Ten thousand"))
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.get_by_label("Find an item").fill(str(table["item"][9_999]))
    assert str(table["item"][9_999]) in page.locator(".board th[scope=row]").all_inner_texts()
    page.close()
