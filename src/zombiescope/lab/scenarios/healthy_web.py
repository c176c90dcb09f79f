"""A busy web server on loopback: many small packets and system calls, and nothing wrong."""

from __future__ import annotations

from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SCRIPT = r"""
import http.client, http.server, socket
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the acknowledgement of its header
    def do_GET(self):
        body = b"x" * 2048
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *ignored):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
for _ in range(2):
    if os.fork() == 0:
        dies_with_its_parent()
        server.serve_forever()
port = server.server_address[1]
wait_for_the_word()
for number in range(8):
    if os.fork() == 0:
        name_is("web-client")
        dies_with_its_parent()
        while True:
            asks = http.client.HTTPConnection("127.0.0.1", port)
            for _ in range(50):
                asks.request("GET", "/")
                asks.getresponse().read()
            asks.close()
time.sleep(100000)
"""

SCENARIO = Scenario(
    id="healthy-web",
    title="A busy web server on loopback",
    does="serves small pages to eight clients on 127.0.0.1, as fast as it can",
    truth=Truth(None),
    script=SCRIPT,
    comm="web-server",
    seconds=60.0,
    needs=Needs(512 * MB),
    kind="healthy",
)
