// Tries the flame graph and the heat map without a server, on 100,000 nodes that nobody ran: ?nodes=N, ?depth=N, everything
// that an address of the page may say (?view=, ?inv=1, ?q=, ?sel=, ?cpu=2 for a chart), and ?bench=1 (measures redrawing
// and prints it into the page and document.body.dataset.bench).

import "../src/style/colours.css";
import "../src/style/base.css";
import "../src/style/chrome.css";
import "../src/style/axis.css";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { useSource } from "../src/api/source";
import { plotWidth } from "../src/axis/moves";
import { synthetic } from "../src/flame/fixtures";
import { Flames } from "../src/samples/flames";
import { Heat } from "../src/samples/heat";
import { settle } from "../src/samples/span";
import { begin, dark, info, watchRecording } from "../src/state";
import { bench, benchPanel, comb } from "./bench";
import { SyntheticSource, samplesOf } from "./samples";

const given = new URLSearchParams(location.search);
const tree = synthetic(Number(given.get("nodes") ?? 100_000), { depth: Number(given.get("depth") ?? 70) });

function Samples() {
  useEffect(settle, []);
  return (
    <main style={{ padding: "12px 16px" }}>
      {info.value && (
        <section class="samples">
          <Heat height={110} />
          <Flames height={Number(given.get("height") ?? 470)} />
        </section>
      )}
      <pre id="bench" />
    </main>
  );
}

async function measure(): Promise<void> {
  const theme = dark.value ? "dark" : "light";
  const text = [
    await benchPanel(tree, theme),
    bench(tree, theme),
    `\nevery frame wider than a pixel:\n${bench(comb(100_000), theme)}`,
    `\nas many texts as fit:\n${bench(comb(4_000), theme)}`,
  ].join("\n");
  document.body.dataset.bench = text;
  document.getElementById("bench")!.textContent = text;
}

useSource(new SyntheticSource(samplesOf(tree)));
begin();
watchRecording();
plotWidth.value = document.documentElement.clientWidth - 32;
render(<Samples />, document.getElementById("app")!);
document.body.dataset.ready = "yes";
if (given.get("bench")) setTimeout(() => void measure(), 500);
