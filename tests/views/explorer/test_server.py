"""Who is answered, with what, and what is refused."""

import json
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from threading import Timer

import numpy as np
import pytest

from manifactor.command.main import main
from manifactor.views.explorer.server import HEADERS, listening, save_new

from ..conftest import TOKEN, N, near_arguments, serving

ALL = {"conditions": []}
HALF = {"conditions": [{"column": "factor1", "low": 0, "high": 0.5}]}
PLACE = {"at": [[0.5], [180]]}
LASSO = {"x": "factor1", "y": "factor2"}


def answer(port, path, body=None, *, token=TOKEN, **headers):
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    given = {"X-Manifactor-Token": token, "Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    content = body if body is None or isinstance(body, bytes) else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, content, given)
    response = connection.getresponse()
    out = response.status, response.read(), dict(response.getheaders())
    connection.close()
    return out


def asked(port, name, body):
    status, content, _ = answer(port, f"/api/{name}", body)
    return status, json.loads(content)


def test_the_page_needs_its_token_and_its_program_does_not(port):
    assert answer(port, "/", token="")[0] == 403
    _, content, headers = answer(port, "/?token=wrong", token="")
    assert b"token" in content
    assert "set-cookie" not in headers
    assert b"<!doctype html>" in answer(port, "/", token="", Cookie=entered(port))[1]
    assert answer(port, "/main.js", token="")[0] == 200


def entered(port, **headers):
    """The cookie that a browser gets for the token."""
    status, _, found = answer(port, f"/?token={TOKEN}", token="", **headers)
    assert status == 303
    return found["set-cookie"].partition(";")[0]


def test_the_token_leaves_the_address(port):
    status, _, headers = answer(port, f"/?a=1&token={TOKEN}&b=", token="")
    assert (status, headers["location"]) == (303, "/?a=1&b=")
    assert answer(port, f"/?token={TOKEN}", token="")[2]["location"] == "/"
    cookie, *rules = headers["set-cookie"].split("; ")
    assert cookie == f"manifactor-{port}={TOKEN}"
    # Without a date: a cookie of the session.
    assert sorted(map(str.lower, rules)) == ["httponly", "path=/", "samesite=strict"]


def test_the_cookie_stands_for_the_token(port):
    cookie = entered(port)
    for header in (cookie, f"other=1; {cookie}", f"manifactor-{port}=old; {cookie}"):
        assert answer(port, "/api/about", token="", Cookie=header)[0] == 200
    for header in (f"{cookie}x", f"manifactor-1={TOKEN}", f"x{cookie}", "", ";=;"):
        assert answer(port, "/api/about", token="", Cookie=header)[0] == 403


def test_explorers_behind_one_name_have_cookies_of_their_own(port):
    names = {
        entered(port, Host=host).partition("=")[0]
        for host in ("localhost:8642", "localhost:9000", "localhost")
    }
    assert names == {"manifactor-8642", "manifactor-9000", "manifactor-80"}


def test_a_page_of_another_site_cannot_ask_with_the_cookie(port):
    cookie = entered(port)
    for site in ("cross-site", "same-site"):
        for mode in ("no-cors", "cors"):
            fetch = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": mode}
            found = answer(port, "/api/about", token="", Cookie=cookie, **fetch)
            assert found[0] == 403
    origin = f"http://127.0.0.1:{port + 1}"
    refused = answer(port, "/api/select", ALL, token="", Cookie=cookie, Origin=origin)
    assert refused[0] == 403


@pytest.mark.parametrize(
    "path", ["/api/about", "/api/column/factor1", "/api/spectrum", "/api/angles", "/api/evidence"]
)
def test_nothing_of_the_run_is_told_without_the_token(port, path):
    assert answer(port, path, token="")[0] == 403
    assert answer(port, path)[0] == 200


@pytest.mark.parametrize("name", ["near", "select", "export", "save"])
def test_nothing_is_done_without_the_token(port, name):
    body = {**ALL, **PLACE, "suffix": ".csv"}
    assert answer(port, f"/api/{name}", body, token="a-tokem")[0] == 403


@pytest.mark.parametrize(
    "host", ["example.org", "example.org:80", "127.0.0.1.example.org", "0.0.0.0", "", "169.254.1.1"]
)
def test_other_names_for_this_machine_are_refused(port, host):
    assert answer(port, "/api/about", Host=host)[0] == 400
    assert answer(port, "/main.js", Host=host)[0] == 400


def test_a_tunnel_may_end_at_another_port(port):
    assert answer(port, "/api/about", Host="localhost:9000")[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://example.org", "null", "http://127.0.0.1:1", "http://localhost", "http://["]
)
def test_requests_of_other_sites_are_refused(port, origin):
    assert answer(port, "/api/select", ALL, Origin=origin)[0] == 403
    own = {"Origin": f"http://127.0.0.1:{port}", "Host": f"127.0.0.1:{port}"}
    assert answer(port, "/api/select", ALL, **own)[0] == 200


def test_a_form_of_another_site_cannot_ask(port):
    status, content, _ = answer(port, "/api/select", ALL, Content_Type="text/plain")
    assert (status, b"application/json" in content) == (400, True)


def test_every_answer_is_fenced_in(port):
    for path, token in {"/main.js": "", "/api/about": TOKEN, "/nothing": TOKEN, "/": "no"}.items():
        headers = answer(port, path, token=token)[2]
        assert HEADERS.items() <= {name.lower(): value for name, value in headers.items()}.items()
    assert "unsafe" not in HEADERS["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fetc/passwd",
        "/page/main.js",
        "/api/column/..%2f..%2frun.json",
        "/api/column/%00",
    ],
)
def test_no_path_leads_to_the_file_system(port, path):
    assert answer(port, path)[0] in (403, 404)


def test_the_page_names_nothing_that_lies_elsewhere(port):
    names = ("main.js", "style.css", "tables.css", "cloud.js", "points.js", "neighbourhood.js")
    for name in ("", *names, "pages.js", "controls.js"):
        text = answer(port, f"/{name}")[1].decode()
        # The name of SVG, which is never fetched.
        assert set(re.findall(r"\w+://[\w.]+", text)) <= {"http://www.w3.org"}


def test_a_column_is_that_of_the_run(port, scene):
    values = np.frombuffer(answer(port, "/api/column/factor2")[1], dtype="<f4")
    assert np.allclose(values, scene.run.places[1].displayed, rtol=1e-6)


def test_an_answer_that_was_made_is_not_made_again(scene, monkeypatch):
    made = []

    def near(self, at, **options):
        made.append(at)
        return {"at": at}

    monkeypatch.setattr("manifactor.views.explorer.scene.RunScene.near", near)
    with serving(scene) as port:
        for turn in (180, 180, 90):
            body = {"at": [[0.5], [turn]]}
            assert asked(port, "near", body) == (200, {"at": [[0.5], [turn]]})
    assert len(made) == 2


def test_pictures_arrive_as_they_were_made(port, scene):
    body = {"at": [[0.5], [40.0]], "mode": "held"}
    made = scene.near(**near_arguments(body, scene))
    status, sent = asked(port, "near", body)
    assert status == 200
    assert sent["image"] == made["image"]
    assert sent["thumbnails"] == made["thumbnails"]
    assert sent["samples"] == made["samples"]


def test_places_beyond_a_factor_are_those_at_its_end(port):
    far, end = (asked(port, "near", {"at": [[x], [40]], "mode": "held"})[1] for x in (1e99, 1.0))
    assert far["samples"] == end["samples"]


def test_counts_are_exact(port, scene):
    status, found = asked(port, "select", HALF)
    assert status == 200
    assert found["count"] == (scene.run.places[0].coordinate <= 0.5).sum()
    assert asked(port, "select", ALL)[1]["count"] == N


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("select", [], "object"),
        ("select", {}, "conditions"),
        ("select", {"conditions": "all"}, "conditions"),
        ("select", {"conditions": [7]}, "conditions.0"),
        ("select", {"conditions": [{"column": "../run.json", "low": 0, "high": 1}]}, "factor1"),
        ("select", {"conditions": [{"column": "factor1", "low": "a", "high": 1}]}, "low"),
        ("select", {"conditions": [{"column": "factor1", "low": True, "high": 1}]}, "low"),
        ("select", {"conditions": [{"column": "factor2", "low": 0, "high": 1000}]}, "degrees"),
        ("select", {"conditions": [{**LASSO, "polygon": [[0, 0]]}]}, "polygon"),
        ("select", {"conditions": [{**LASSO, "polygon": [[0, 0]] * 1001}]}, "polygon"),
        ("select", {"conditions": [{**LASSO, "polygon": [[0, 0], [1], [2, 2]]}]}, "polygon"),
        ("select", {"conditions": [{**LASSO, "x": "a", "polygon": [[0, 0]] * 3}]}, "factor1"),
        ("near", {}, "at"),
        ("near", {"at": [[0.5]]}, "all 2 factors"),
        ("near", {**PLACE, "mode": "guessed"}, "'matched' or 'held'"),
        ("near", {**PLACE, "count": 10**9}, "[1, 400]"),
        ("near", {**PLACE, "factor": 2}, "`factor`"),
        ("near", {**PLACE, "axis": True}, "axis"),
        ("near", {"at": [[0.5], [float("nan")]]}, "at.1.0"),
        ("near", {"at": [[0.5], [1e200]]}, "at.1.0"),
        ("export", {**ALL, "suffix": ".sh"}, "must be one of .star"),
        ("export", {**ALL, "suffix": "../../x.csv"}, "must be one of .star"),
        ("save", {**ALL, "suffix": "../../x.csv"}, "must be one of .star"),
        (
            "export",
            {"conditions": [{"column": "factor1", "low": 2, "high": 3}], "suffix": ".csv"},
            "must hold some",
        ),
    ],
)
def test_bad_requests_get_one_sentence(port, name, body, words):
    status, found = asked(port, name, body)
    assert status == 400
    assert words in found["error"]


def test_a_request_that_is_no_json_or_too_long_is_refused(port):
    assert answer(port, "/api/select", b"{")[0] == 400
    assert answer(port, "/api/select", b"[" * 100_000)[0] == 400
    status, content, _ = answer(port, "/api/select", b" " * (2**20 + 1))
    assert (status, b"at most" in content) == (400, True)


def test_a_selection_leaves_as_files_that_other_programs_read(port, scene):
    chosen = np.flatnonzero(scene.run.places[0].coordinate <= 0.5)
    table = answer(port, "/api/export", {**HALF, "suffix": ".csv"})[1].decode().splitlines()
    assert table[0].startswith("sample,factor1,")
    assert [int(float(row.split(",")[0])) for row in table[1:]] == chosen.tolist()
    indices = pickle.loads(answer(port, "/api/export", {**HALF, "suffix": ".pkl"})[1])
    assert indices.tolist() == chosen.tolist()
    assert b"_mfFactor1 " in answer(port, "/api/export", {**HALF, "suffix": ".star"})[1]


def test_saved_files_get_new_names_and_nothing_else_is_left(port):
    first, second = (asked(port, "save", {**HALF, "suffix": ".star"})[1]["saved"] for _ in range(2))
    first, second = Path(first), Path(second)
    assert set(first.parent.glob("*.star")) == {first, second}
    assert first.read_bytes() == second.read_bytes()


def test_a_save_that_fails_leaves_nothing_behind(scene, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with serving(scene, folder=tmp_path) as port:
        monkeypatch.setattr("manifactor._support.files.os.fsync", full)
        status, found = asked(port, "save", {**HALF, "suffix": ".csv"})
    assert (status, found) == (500, {"error": "No space left on device."})
    assert list(tmp_path.iterdir()) == []


def test_saving_needs_a_folder_from_the_command_line(scene):
    with serving(scene) as port:
        status, found = asked(port, "save", {**ALL, "suffix": ".csv"})
        assert (status, "--save-to" in found["error"]) == (400, True)


def test_a_name_that_is_taken_is_not_taken_again(tmp_path):
    (tmp_path / "selection-001.csv").touch()
    assert save_new(tmp_path, ".csv", b"1").name == "selection-002.csv"
    assert save_new(tmp_path, ".star", b"2").name == "selection-001.star"


def test_a_link_is_neither_replaced_nor_followed(tmp_path):
    folder, aim = tmp_path / "saved", tmp_path / "aim"
    folder.mkdir()
    # One that leads nowhere, to a file, and to itself.
    (folder / "selection-001.csv").symlink_to(aim)
    aim.with_name("old").write_bytes(b"old")
    (folder / "selection-002.csv").symlink_to(aim.with_name("old"))
    (folder / "selection-003.csv").symlink_to("selection-003.csv")
    path = save_new(folder, ".csv", b"new")
    assert (path.name, path.read_bytes()) == ("selection-004.csv", b"new")
    assert not aim.exists()
    assert aim.with_name("old").read_bytes() == b"old"
    assert sum(each.is_symlink() for each in folder.iterdir()) == 3


def test_many_who_save_at_once_get_a_name_each(tmp_path):
    contents = [str(number).encode() for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda content: save_new(tmp_path, ".csv", content), contents))
    assert len(set(paths)) == 40
    assert [path.read_bytes() for path in paths] == contents
    assert set(tmp_path.iterdir()) == set(paths)


def test_only_this_machine_is_listened_to():
    with listening(0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("port", ["-1", "70000", "taken"])
def test_a_port_that_cannot_be_had_is_one_line(run, capsys, port):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = str(other.getsockname()[1]) if port == "taken" else port
        assert main(["explore", str(run), "--port", number]) == 2
    error = capsys.readouterr().err
    assert f"--port must be free and from 0 to 65535; got {number}" in error
    assert error.count("\n") == 1


def test_a_folder_that_is_no_run_is_one_line(tmp_path, capsys):
    assert main(["explore", str(tmp_path)]) == 2
    assert "is not a run folder" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_prints_its_address_and_stops_on_interrupt(run):
    command = [sys.executable, "-m", "manifactor.__main__", "explore", str(run), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        too_late = Timer(300, process.kill)  # guards against a hang only
        too_late.start()
        lines = [process.stdout.readline() for _ in range(3)]
        port, token = re.fullmatch(
            r".*http://127\.0\.0\.1:(\d+)/\?token=(\S{16,})\n", lines[0]
        ).groups()
        assert f"ssh -L {port}:127.0.0.1:{port} " in lines[1]
        assert answer(int(port), "/api/about", token=token)[0] == 200
        waiting = HTTPConnection("127.0.0.1", int(port), timeout=300)
        waiting.putrequest("POST", "/api/select")  # a request that never ends holds nothing up
        headers = {"X-Manifactor-Token": token, "Content-Type": "application/json"}
        for name, value in {**headers, "Content-Length": "1000"}.items():
            waiting.putheader(name, value)
        waiting.endheaders(b"{")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
        waiting.close()
        too_late.cancel()
    assert (process.returncode, out, error) == (0, "Stopped.\n", "")
