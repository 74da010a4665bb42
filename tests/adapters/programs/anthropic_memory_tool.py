"""A household's journal keeper with Anthropic's memory tool, against a local Messages API (offline).

The SDK's tool runner carries out the memory commands the model asks for. The Messages API is played
by a small HTTP server in this program: each task is a script of memory commands.
"""
import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from anthropic import Anthropic

from anthropic.tools import BetaLocalFilesystemMemoryTool

memory = BetaLocalFilesystemMemoryTool(base_path=tempfile.mkdtemp())  # <- here


def text_in(content: str | list[dict]) -> str:
    return content if isinstance(content, str) else " ".join(block["text"] for block in content)


SCRIPTS: dict[str, list[dict]] = {}  # task -> the memory commands the model will ask for
REQUESTS: list[dict] = []


class MessagesAPI(BaseHTTPRequestHandler):
    """POST /v1/messages: the next command of the task's script, or, at its end, the last result as text."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        REQUESTS.append(request)
        messages = request["messages"]
        task = text_in(messages[0]["content"])
        step = sum(m["role"] == "assistant" for m in messages)
        if self.path.split("?")[0] != "/v1/messages" or task not in SCRIPTS:
            self.send_error(404)
            return
        if step < len(SCRIPTS[task]):
            content = [{"type": "tool_use", "id": f"toolu_{len(REQUESTS)}", "name": "memory", "input": SCRIPTS[task][step]}]
        else:
            content = [{"type": "text", "text": f"Done: {task}"}]
        body = json.dumps({
            "id": f"msg_{len(REQUESTS)}", "type": "message", "role": "assistant", "model": request["model"],
            "content": content, "stop_reason": "tool_use" if content[0]["type"] == "tool_use" else "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }).encode()
        self.send_response(200)
        for name, value in [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), MessagesAPI)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = Anthropic(api_key="none", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0)


def do(*commands: dict) -> list[dict]:
    """One task: let the model ask for these commands; give back the results it was sent."""
    task = f"task {len(SCRIPTS) + 1}"
    SCRIPTS[task] = list(commands)
    runner = client.beta.messages.tool_runner(
        model="claude-sonnet-5-5", max_tokens=1024, tools=[memory], messages=[{"role": "user", "content": task}],
        thread=False,  # each request carries the whole history: the little server holds none
    )
    final = runner.until_done()
    assert final.content[0].text == f"Done: {task}"
    sent = REQUESTS[-1]["messages"]
    return [block for m in sent[1:] if m["role"] == "user" for block in m["content"] if block["type"] == "tool_result"]


def one(**command) -> str:
    (result,) = do(command)
    assert not result.get("is_error"), result
    return text_in(result["content"])


def refused(**command) -> str:
    (result,) = do(command)
    assert result.get("is_error"), result
    return text_in(result["content"])


def view(path: str, **more) -> str:
    return one(command="view", path=path, **more)


# An empty memory, as the model finds it at the start of its first conversation.
assert "/memories" in view("/memories") and REQUESTS[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]

# The first conversation: several commands in one task.
results = do(
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/shopping.md", "file_text": "# Shopping\n- milk\n- rye bread\n- soap\n"},
    {"command": "create", "path": "/memories/people/aunt_vera.md", "file_text": "Aunt Vera visits on 3 May.\nShe drinks tea.\n"},
    {"command": "create", "path": "/memories/house.txt", "file_text": "boiler: serviced in 2019\nroof: new in 2021"},
)
assert len(results) == 4 and not any(r.get("is_error") for r in results), results
assert "/memories/shopping.md" in text_in(results[1]["content"])

# Another conversation sees the directory, two levels deep, and the files with line numbers.
listing = view("/memories")
for path in ("/memories/shopping.md", "/memories/people", "/memories/people/aunt_vera.md", "/memories/house.txt"):
    assert path in listing, listing
assert "aunt_vera.md" in view("/memories/people") and "shopping.md" not in view("/memories/people")
lines = view("/memories/shopping.md").splitlines()
assert [line.strip().split("\t") for line in lines[1:5]] == [
    ["1", "# Shopping"], ["2", "- milk"], ["3", "- rye bread"], ["4", "- soap"]], lines
part = view("/memories/shopping.md", view_range=[2, 3])
assert "milk" in part and "rye bread" in part and "soap" not in part and "2\t" in part, part

# str_replace changes exactly one place; a missing or ambiguous text is refused and changes nothing.
assert "10 May" in one(command="str_replace", path="/memories/people/aunt_vera.md", old_str="3 May", new_str="10 May")
assert "10 May" in view("/memories/people/aunt_vera.md") and "3 May" not in view("/memories/people/aunt_vera.md")
assert "did not appear" in refused(command="str_replace", path="/memories/house.txt", old_str="garage", new_str="shed")
assert "Multiple" in refused(command="str_replace", path="/memories/house.txt", old_str="in 20", new_str="in 19")
assert "2019" in view("/memories/house.txt") and "2021" in view("/memories/house.txt")

# insert: after the given line, 0 is the beginning; a line beyond the end is refused.
one(command="insert", path="/memories/shopping.md", insert_line=2, insert_text="- butter\n")
one(command="insert", path="/memories/shopping.md", insert_line=0, insert_text="<!-- kept by the journal keeper -->\n")
order = view("/memories/shopping.md")
assert order.index("kept by") < order.index("# Shopping") < order.index("milk") < order.index("butter") < order.index("rye")
assert "insert_line" in refused(command="insert", path="/memories/shopping.md", insert_line=99, insert_text="- salt\n")

# create does not overwrite.
assert "exists" in refused(command="create", path="/memories/house.txt", file_text="nothing")
assert "boiler" in view("/memories/house.txt")

# rename files and directories, also into new directories; an existing destination is refused.
one(command="rename", old_path="/memories/house.txt", new_path="/memories/home/house.txt")
one(command="rename", old_path="/memories/people", new_path="/memories/family")
assert "tea" in view("/memories/family/aunt_vera.md") and "roof" in view("/memories/home/house.txt")
assert "does not exist" in refused(command="view", path="/memories/house.txt")
assert "exists" in refused(command="rename", old_path="/memories/shopping.md", new_path="/memories/home/house.txt")

# delete a file, and a directory with all in it; never the memory itself.
one(command="delete", path="/memories/home/house.txt")
one(command="delete", path="/memories/family")
assert "does not exist" in refused(command="delete", path="/memories/family/aunt_vera.md")
assert refused(command="delete", path="/memories")
left = view("/memories")
assert "shopping.md" in left and "aunt_vera" not in left and "house.txt" not in left

# Nothing outside of /memories.
for path in ("/etc/passwd", "/memories/../secret.txt", "/memories/../../etc/passwd"):
    assert "root:" not in refused(command="view", path=path)
assert refused(command="create", path="/memories/../escaped.txt", file_text="out")

# The application itself may clear everything.
memory.clear_all_memory()
assert "shopping.md" not in view("/memories")

server.shutdown()
server.server_close()
print("ok")
