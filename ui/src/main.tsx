import { render } from "preact";
import { App } from "./chrome/app";
import { begin, watchRecording } from "./state";
import "./style/colours.css";
import "./style/base.css";
import "./style/chrome.css";
import "./style/axis.css";

async function start(): Promise<void> {
  // VITE_FAKE=192 npm run dev: a node of that many cores that exists nowhere, to try drawing on.
  if (import.meta.env.DEV && import.meta.env.VITE_FAKE) await import("../dev/fake");
  begin();
  watchRecording();
  render(<App />, document.getElementById("app")!);
}

void start();
