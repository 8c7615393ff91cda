"""Attacks on the package by strangers: files that they send, requests to the page of studies, agents.

Each is the source of a script, which is run in a folder of its own. It calls ``succeeds`` with a reason if the attack
succeeds, and ends with status 0 otherwise.
"""

COMMON = """
import re, socket, sys, threading, time
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlencode

def succeeds(why):
    print("the attack succeeds:", why, flush=True)
    os._exit(9)

import os
"""

STATES = """
import pickle
from cbo_gym import evaluate
from cbo_gym.agents import Random
from cbo_gym.errors import CBOGymError

class Touches:
    def __reduce__(self):
        return Path.touch, (Path("marker"),)

agent = Random()
evaluate(agent, "CBO/Dropwave-v0", 0, horizon=2)
forged = [pickle.dumps(Touches()), b"cbo-gym agent\\n" + b"0" * 64 + pickle.dumps(Touches())]
assert agent.state().startswith(forged[1][:14])
"""

STATE = """
for content in forged:
    Path("state").write_bytes(content)
    try:
        agent.load("state", agent.task)
        agent.recommend()
    except CBOGymError as error:
        print(error)
    if Path("marker").exists():
        succeeds("a state of an agent ran a command")
"""

CHECKPOINT = """
from base64 import b64encode
from cbo_gym._util.plain import read_plain, write_plain

class StopError(Exception):
    pass

def stop(played):
    if played.round == 3:
        raise StopError

how = {"horizon": 4, "checkpoint": "kept", "checkpoint_every": 2}
try:
    evaluate("Random", "CBO/Dropwave-v0", 0, **how, callbacks=[stop])
except StopError:
    kept = read_plain(Path("kept").read_bytes())
for one in forged:
    for content in (one, write_plain({**kept, "agent": b64encode(one).decode()})):
        Path("kept").write_bytes(content)
        try:
            evaluate("Random", "CBO/Dropwave-v0", 0, **how)
        except Exception as error:
            print(error)
        if Path("marker").exists():
            succeeds("a checkpoint ran a command")
"""

PAGE = """
from cbo_gym.study import create_study
from cbo_gym.study.page import serve

def create(name, **more):
    about = {"diagram": "dag { x -> y }", "reward": "y", "settable": {"x": (0.0, 1.0)}, "horizon": 20}
    create_study(name, storage="s.db", agent="Random", **{**about, **more})

def start(**how):
    said = SimpleQueue()
    threading.Thread(target=serve, args=["s.db"], kwargs={"port": 0, "say": said.put, **how}, daemon=True).start()
    return int(re.search(r":(\\d+);", said.get(timeout=120))[1])

def send(port, line, body=b"", seconds=120, **headers):
    headers = {"Host": f"localhost:{port}", "Connection": "close", "Content-Length": len(body), **headers}
    lines = [line + " HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()), "", ""]
    parts = []
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall("\\r\\n".join(lines).encode("latin-1") + body)
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts).decode("latin-1")

def post(port, path, seconds=120, **fields):
    forgery = re.search('name="forgery" value="([^"]*)"', send(port, "GET /new"))[1]
    form = "application/x-www-form-urlencoded"
    return send(port, f"POST {path}", urlencode({**fields, "forgery": forgery}).encode(), seconds, Content_Type=form)
"""

# Starlette up to 1.0.0 makes the URL of a request of its Host header.
LOGIN = """
import starlette.requests
from starlette.datastructures import URL

def url(self):
    host = dict(self.scope["headers"]).get(b"host", b"").decode("latin-1")
    return URL(f"{self.scope['scheme']}://{host}{self.scope['path']}")

starlette.requests.HTTPConnection.url = property(url)
create("one")
port = start(token="sixteen letters!")
assert send(port, "GET /studies/1").startswith("HTTP/1.1 303")
for host in ("localhost/login?", f"localhost:{port}/login?", "localhost/static/"):
    for line in ("GET /studies/1", "GET /studies/1/trials.csv", "GET /new"):
        if (answer := send(port, line, Host=host)).startswith("HTTP/1.1 200"):
            succeeds(f"{line} without a token, as {host}")
"""

COMPRESSED = """
import gzip, resource
from typer.testing import CliRunner
from cbo_gym.cli import app

create("one")
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
bombs = {
    "gzip": gzip.compress(b"x,y\\n" + b"1,2\\n" * 2_000_000),
    "a million columns": b"x,y" + b",a" * 1_000_000 + b"\\n" + b"1," * 1_000_000 + b"1\\n",
    "a million empty rows": b"x,y\\n" + b",\\n" * 1_300_000,
}
for name, content in bombs.items():
    Path("bomb.csv").write_bytes(content)
    done = CliRunner().invoke(app, ["study", "import", "s.db", "bomb.csv"])
    print(name, done.output[-200:], f"{peak() - before:.0f} MiB")
    if done.exit_code == 0:
        succeeds(f"{name} is read")
    if peak() - before > 300:
        succeeds(f"{name} takes {peak() - before:.0f} MiB")
"""

FORMULA = """
create("one", diagram='dag { "=1+1" -> y }', settable={"=1+1": (0.0, 1.0)})
port = start()
post(port, "/studies/1/import", csv="=1+1,y\\n1,2\\n")
for name in ("data", "trials"):
    table = send(port, f"GET /studies/1/{name}.csv").partition("\\r\\n\\r\\n")[2]
    if re.search('(^|,)"?=1', table):
        succeeds(f"a cell of {table!r} is a formula")
"""

LUCKY = """
from cbo_gym import leaderboard, sweep
from cbo_gym.evaluation import load_runs

sweep(["Random", "tests.trials.intruders:GivesUp"], "CBO/Dropwave-v0", 12, "runs", horizon=20)
runs = list(load_runs("runs"))
print(sorted((run.agent, run.seed, run.status) for run in runs))
statuses = {run.status for run in runs if "GivesUp" in run.agent}
assert statuses == {"failed", "finished"}
overall = leaderboard("runs").overall
print(overall.select("agent", "runs", "iqm", "score", "average_score"))
if "GivesUp" in overall["agent"][0]:
    succeeds("an agent that fails on bad seeds ranks first")
for name in ("iqm", "score"):
    found = dict(zip(overall["agent"], overall[name], strict=True))
    if found["tests.trials.intruders:GivesUp"] > found["Random"]:
        succeeds(f"an agent that fails on bad seeds has a higher {name}")
"""

KNOWN = """
from cbo_gym import sweep
from cbo_gym.evaluation import load_runs

sweep("tests.trials.intruders:NamesItsEnvironment", "CBO/Dropwave-v0", 1, "runs", horizon=2)
(run,) = load_runs("runs")
if "on 'CBO/Dropwave-v0'" in run.error:
    succeeds("an isolated agent knows that play is not blind")
assert "on 'the environment'" in run.error, run.error
"""

DIAGRAM = """
create("one")
port = start()
assert post(port, "/studies/1/ask").startswith("HTTP/1.1 303")
many = [" ".join(f"{letter}{i}" for i in range(1000)) for letter in "ab"]
diagram = f"dag {{ {{{many[0]}}} -> {{{many[1]}}} }}"
text = f"name: large\\nreward: b1\\nsettable: {{a1: [0, 1]}}\\nagent: Random\\nhorizon: 9\\ndiagram: '{diagram}'\\n"
threading.Thread(target=post, args=[port, "/new/yaml", 500], kwargs={"yaml": text}, daemon=True).start()
time.sleep(2)
begun = time.monotonic()
try:
    post(port, "/studies/1/ask", seconds=60)
except TimeoutError:
    succeeds("a large diagram keeps the agents of others from thinking")
print(f"{time.monotonic() - begun:.1f} s")
os._exit(0)
"""

SILENT = """
create("one")
port = start()
silent = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(100)]
time.sleep(15)
if not (answer := send(port, "GET /studies/1")).startswith("HTTP/1.1 200"):
    succeeds(f"with 100 silent connections others get {answer[:30]}")
"""

ERRORS = """
create("one")
port = start()
form = "application/x-www-form-urlencoded"
requests = [("GET /studies/1?done=asked&trial=" + "1" * 4301, {}), ("GET /", {"Origin": "http://["}),
            ("POST /new", {"Origin": "http://["})]
for charset in ("undefined", "idna", "punycode", "unicode_escape"):
    for path in ("/login", "/new"):
        requests.append((f"POST {path}", {"Content_Type": f"{form}; charset={charset}"}))
        more = f"multipart/form-data; boundary=b; charset={charset}"
        requests.append((f"POST {path}", {"Content_Type": more}))
body = b'--b\\r\\nContent-Disposition: form-data; name="a"\\r\\n\\r\\n\\xff\\\\N{x}\\r\\n--b--\\r\\n'
for line, headers in requests:
    sent = body if "multipart" in headers.get("Content_Type", "") else b"a=%ff%5cN&b=%5Cx" if "POST" in line else b""
    answer = send(port, line, sent, **headers)
    head = answer.partition("\\r\\n\\r\\n")[0].lower()
    if head.startswith("http/1.1 500") or "content-security-policy" not in head:
        succeeds(f"{line[:40]} {headers} is answered by {head[:60]!r}")
"""

LABELS = """
from typer.testing import CliRunner
from cbo_gym.cli import app

about = "reward: y\\ndiagram: 'dag { x -> y }'\\nmode: soft\\nhorizon: 9\\n"
about += "parameters: {p: {node: x, bounds: [0, 1]}}\\n"
for label in ("StableBaselines3(tensorboard_log='written')", "StableBaselines3(device='x')",
              "Random(path='/etc')", "os:system"):
    Path("study.yaml").write_text(f'{about}agent: "{label}"\\n')
    done = CliRunner().invoke(app, ["study", "create", "study.yaml", "s.db"])
    print(label, done.exit_code, done.output[-300:])
    if done.exit_code == 0:
        CliRunner().invoke(app, ["study", "ask", "s.db"])
        succeeds(f"a study takes the agent {label}" + (", which wrote" if Path("written").exists() else ""))
"""

ATTACKS = {
    "a state runs a command": STATES + STATE,
    "a checkpoint runs a command": STATES + CHECKPOINT,
    "no login": PAGE + LOGIN,
    "compressed and wide tables": PAGE + COMPRESSED,
    "a formula in a header": PAGE + FORMULA,
    "failing on bad seeds": LUCKY,
    "knowing whether play is blind": KNOWN,
    "a large diagram": PAGE + DIAGRAM,
    "silent connections": PAGE + SILENT,
    "raw errors": PAGE + ERRORS,
    "a study's label that results refuse": LABELS,
}
