import { render } from "preact";
import { App } from "./chrome/app";
import { begin } from "./state";
import "./style/colours.css";
import "./style/base.css";

begin();
render(<App />, document.getElementById("app")!);
