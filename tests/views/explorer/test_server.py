"""Who is answered, with what, and what is refused."""

import json
import re
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from threading import Timer

import numpy as np
import pytest

from manifactor.command.main import main
from manifactor.views.explorer.server import HEADERS, listening, save_new
from tests.views.scenes import open_scene

from ..conftest import TOKEN, N, copied, near_look, serving

ALL = {"conditions": []}
HALF = {"conditions": [{"column": "factor1", "low": 0, "high": 0.5}]}
PLACE = {"at": [[0.5], [180]]}
LASSO = {"x": "factor1", "y": "factor2"}


def answer(port, path, body=None, *, token=TOKEN, **headers):
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    given = {"X-Manifactor-Token": token, "Content-Type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if body is None or isinstance(body, bytes) else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, content, given)
    response = connection.getresponse()
    out = response.status, response.read(), dict(response.getheaders())
    connection.close()
    return out


def status(*given, **headers):
    return answer(*given, **headers)[0]


def asked(port, name, body):
    status, content, _ = answer(port, f"/api/{name}", body)
    return status, json.loads(content)


def entered(port, **headers):
    """The cookie that a browser gets for the token."""
    status, _, found = answer(port, f"/?token={TOKEN}", token="", **headers)
    assert status == 303
    return found["set-cookie"].partition(";")[0]


def test_the_page_needs_its_token_and_its_program_does_not(port):
    assert status(port, "/", token="") == 403
    _, content, headers = answer(port, "/?token=wrong", token="")
    assert b"token" in content
    assert "set-cookie" not in headers
    assert b"<!doctype html>" in answer(port, "/", token="", Cookie=entered(port))[1]
    assert status(port, "/main.js", token="") == 200


def test_the_token_leaves_the_address_for_a_cookie_of_the_session(port):
    status, _, headers = answer(port, f"/?a=1&token={TOKEN}&b=", token="")
    assert (status, headers["location"]) == (303, "/?a=1&b=")
    assert answer(port, f"/?token={TOKEN}", token="")[2]["location"] == "/"
    cookie, *rules = headers["set-cookie"].split("; ")
    assert cookie == f"manifactor-{port}={TOKEN}"
    # Without a date.
    assert sorted(map(str.lower, rules)) == ["httponly", "path=/", "samesite=strict"]
    hosts = ("localhost:8642", "localhost:9000", "localhost")
    names = {entered(port, Host=host).partition("=")[0] for host in hosts}
    assert names == {"manifactor-8642", "manifactor-9000", "manifactor-80"}


def test_the_cookie_stands_for_the_token(port):
    cookie = entered(port)
    for header in (cookie, f"other=1; {cookie}", f"manifactor-{port}=old; {cookie}"):
        assert status(port, "/api/about", token="", Cookie=header) == 200
    for header in (f"{cookie}x", f"manifactor-1={TOKEN}", f"x{cookie}", "", ";=;"):
        assert status(port, "/api/about", token="", Cookie=header) == 403


def test_a_page_of_another_site_cannot_ask(port):
    own = {"token": "", "Cookie": entered(port)}
    for site in ("cross-site", "same-site"):
        for mode in ("no-cors", "cors"):
            fetch = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": mode}
            assert status(port, "/api/about", **own, **fetch) == 403
    others = ("http://example.org", "null", "http://127.0.0.1:1", "http://localhost", "http://[")
    for origin in (*others, f"http://127.0.0.1:{port + 1}"):
        assert status(port, "/api/select", ALL, **own, Origin=origin) == 403
        assert status(port, "/api/select", ALL, Origin=origin) == 403
    here = f"127.0.0.1:{port}"
    assert status(port, "/api/select", ALL, Origin=f"http://{here}", Host=here) == 200
    # Nor can a form.
    refused, content, _ = answer(port, "/api/select", ALL, Content_Type="text/plain")
    assert (refused, b"application/json" in content) == (400, True)


def test_nothing_is_told_or_done_without_the_token(port):
    for name in ("about", "column/factor1", "spectrum", "angles", "evidence"):
        assert status(port, f"/api/{name}", token="") == 403
        assert status(port, f"/api/{name}") == 200
    for name in ("near", "select", "export", "save", "grid", "movie", "mean", "sample", "name"):
        body = {**ALL, **PLACE, "suffix": ".csv"}
        assert status(port, f"/api/{name}", body, token="a-tokem") == 403


@pytest.mark.parametrize(
    "host", ["example.org", "example.org:80", "127.0.0.1.example.org", "0.0.0.0", "", "169.254.1.1"]
)
def test_other_names_for_this_machine_are_refused(port, host):
    assert status(port, "/api/about", Host=host) == status(port, "/main.js", Host=host) == 400
    # A tunnel may end at another port.
    assert status(port, "/api/about", Host="localhost:9000") == 200


def test_every_answer_is_fenced_in(port):
    for path, token in {"/main.js": "", "/api/about": TOKEN, "/nothing": TOKEN, "/": "no"}.items():
        headers = answer(port, path, token=token)[2]
        assert HEADERS.items() <= {name.lower(): value for name, value in headers.items()}.items()
    assert "unsafe" not in HEADERS["content-security-policy"]


def test_no_path_leads_to_the_file_system(port):
    for path in ("../pyproject.toml", "..%2f..%2fetc/passwd", "page/main.js"):
        assert status(port, f"/{path}") in (403, 404)
    for name in ("..%2f..%2frun.json", "%00"):
        assert status(port, f"/api/column/{name}") in (403, 404)


def test_an_answer_that_was_made_is_not_made_again(scene, monkeypatch):
    made = []

    def near(self, look):
        made.append(look.at)
        return {"at": look.at}

    monkeypatch.setattr("manifactor.views.explorer.scene.RunScene.near", near)
    with serving(scene) as port:
        for turn in (180, 180, 90):
            body = {"at": [[0.5], [turn]]}
            assert asked(port, "near", body) == (200, {"at": [[0.5], [turn]]})
        # Without a folder from the command line nothing is saved.
        status, found = asked(port, "save", {**ALL, "suffix": ".csv"})
        assert (status, "--save-to" in found["error"]) == (400, True)
    assert len(made) == 2


def test_columns_counts_and_pictures_arrive_as_they_were_made(port, scene):
    values = np.frombuffer(answer(port, "/api/column/factor2")[1], dtype="<f4")
    assert np.allclose(values, scene.run.places[1].displayed, rtol=1e-6)
    inside = (scene.run.places[0].coordinate <= 0.5).sum()
    assert [asked(port, "select", body)[1]["count"] for body in (HALF, ALL)] == [inside, N]
    body = {"at": [[0.5], [40.0]], "mode": "held"}
    made = scene.near(near_look(body, scene))
    _, sent = asked(port, "near", body)
    for name in ("image", "thumbnails", "samples"):
        assert sent[name] == made[name]
    # Places beyond a factor are those at its end.
    far, end = (asked(port, "near", {"at": [[x], [40]], "mode": "held"})[1] for x in (1e99, 1.0))
    assert far["samples"] == end["samples"]


def ranged(low, high, column="factor1"):
    return {"conditions": [{"column": column, "low": low, "high": high}]}


def lassoed(polygon, **axes):
    return {"conditions": [{**LASSO, **axes, "polygon": polygon}]}


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("select", [], "object"),
        ("select", {}, "conditions"),
        ("select", {"conditions": [7]}, "conditions.0"),
        ("select", ranged(0, 1, "../run.json"), "factor1"),
        ("select", ranged(True, 1), "low"),
        ("select", ranged(0, 1000, "factor2"), "degrees"),
        ("select", lassoed([[0, 0]]), "polygon"),
        ("select", lassoed([[0, 0]] * 1001), "polygon"),
        ("select", lassoed([[0, 0]] * 3, x="a"), "factor1"),
        ("near", {"at": [[0.5]]}, "all 2 factors"),
        ("near", {**PLACE, "mode": "guessed"}, "'matched' or 'held'"),
        ("near", {**PLACE, "count": 10**9}, "[1, 400]"),
        ("near", {**PLACE, "factor": 2}, "`factor`"),
        ("near", {"at": [[0.5], [float("nan")]]}, "at.1.0"),
        ("grid", {**PLACE, "factors": [0, 2]}, "`factors` must be below 2"),
        ("grid", {**PLACE, "factors": [0], "side": 13}, "side"),
        ("movie", {**PLACE, "factor": 2}, "`factor` must be below 2"),
        ("mean", ALL, "near"),
        ("mean", {**ALL, "near": PLACE, "other": ranged(2, 3)}, "must hold some"),
        ("sample", {"sample": N}, f"`sample` must be below {N}"),
        ("name", {"factor": 2, "name": "a"}, "`factor` must be below 2"),
        ("name", {"factor": 0, "name": "a\nb"}, "name"),
        ("name", {"factor": 0, "name": "a" * 61}, "name"),
        ("export", {**ALL, "suffix": ".sh"}, "must be one of .star"),
        ("save", {**ALL, "suffix": "../../x.csv"}, "must be one of .star"),
        ("export", {**ranged(2, 3), "suffix": ".csv"}, "must hold some"),
        ("select", b"{", "request"),
        ("select", b"[" * 100_000, "request"),
        ("select", b" " * (2**20 + 1), "at most"),
    ],
)
def test_bad_requests_get_one_sentence(port, name, body, words):
    status, found = asked(port, name, body)
    assert status == 400
    assert words in found["error"]


@pytest.mark.medium
def test_a_name_is_written_whole_or_not_at_all_and_told_to_everyone(
    torus_run, tmp_path, monkeypatch
):
    run = copied(torus_run, tmp_path)
    with serving(open_scene(run)) as port, serving(open_scene(run)) as other:
        before = json.loads((run / "run.json").read_text())
        assert status(port, "/api/name", {"factor": 1, "name": "stretch"}) == 200
        for each in (port, other):
            assert json.loads(answer(each, "/api/about")[1])["names"] == ["", "stretch"]
        record = json.loads((run / "run.json").read_text())
        assert record.pop("names") == ["", "stretch"]
        assert record == before

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("manifactor._support.files.os.fsync", full)
        files = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
        assert status(port, "/api/name", {"factor": 0, "name": "turn"}) == 500
        assert {path: path.read_bytes() for path in run.iterdir() if path.is_file()} == files


def test_saved_files_get_new_names_and_a_save_that_fails_leaves_nothing_behind(port, monkeypatch):
    body = {**HALF, "suffix": ".star"}
    first, second = (Path(asked(port, "save", body)[1]["saved"]) for _ in range(2))
    before = set(first.parent.iterdir())
    assert first != second
    assert first.read_bytes() == second.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("manifactor._support.files.os.fsync", full)
    assert asked(port, "save", body) == (500, {"error": "No space left on device."})
    assert set(first.parent.iterdir()) == before


def test_a_name_that_is_taken_is_neither_replaced_nor_followed(tmp_path):
    folder, aim = tmp_path / "saved", tmp_path / "aim"
    folder.mkdir()
    (folder / "selection-001.csv").touch()
    (folder / "selection-002.csv").symlink_to(aim)  # which leads nowhere
    path = save_new(folder, ".csv", b"new")
    assert (path.name, path.read_bytes()) == ("selection-003.csv", b"new")
    assert save_new(folder, ".star", b"2").name == "selection-001.star"
    assert not aim.exists()


@pytest.mark.parametrize("port", ["-1", "70000", "taken"])
def test_a_port_that_cannot_be_had_is_one_line(run, capsys, port):
    with listening(0) as other:
        host, taken = other.getsockname()
        assert host == "127.0.0.1"  # only this machine is listened to
        number = str(taken) if port == "taken" else port
        assert main(["explore", str(run), "--port", number]) == 2
    error = capsys.readouterr().err
    assert f"--port must be free and from 0 to 65535; got {number}" in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_the_command_prints_its_address_and_stops_on_interrupt(run):
    command = [sys.executable, "-m", "manifactor.__main__", "explore", str(run), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        too_late = Timer(300, process.kill)  # guards against a hang only
        too_late.start()
        lines = [process.stdout.readline() for _ in range(3)]
        told = re.fullmatch(r".*http://127\.0\.0\.1:(\d+)/\?token=(\S{16,})\n", lines[0])
        port, token = told.groups()
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
