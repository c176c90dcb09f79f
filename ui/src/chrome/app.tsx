/** The frame around every page: navigation, filters, and what lies above. */

import { useEffect } from "preact/hooks";
import { AuditPage, CgroupsPage, FleetPage, HomePage, IncidentPage, IncidentsPage } from "../pages";
import { foreign, gone, info, lost, page, recordings, refresh, trouble } from "../state";
import { Banners } from "./banner";
import { openRecording } from "./commands";
import { NodeBar } from "./filters";
import { Header } from "./header";
import { Help } from "./help";
import { listenToKeys } from "./keys";
import { Link } from "./link";
import { NodePage } from "./node";
import { Palette } from "./palette";
import { Toast } from "./share";
import { AskToken, Empty, Loading, Problem } from "./states";
import { hideTip, TipLayer } from "./tip";

const PAGES = {
  home: HomePage,
  node: NodePage,
  incidents: IncidentsPage,
  incident: IncidentPage,
  cgroups: CgroupsPage,
  audit: AuditPage,
  fleet: FleetPage,
};
const TITLES = {
  home: "Home",
  node: "Node",
  incidents: "Incidents",
  incident: "Incident",
  cgroups: "Cgroups",
  audit: "Audit",
  fleet: "Fleet",
};
/** Pages that show samples, and so obey the filters. */
const FILTERED = new Set(["node"]);

export function App() {
  const here = page.value;
  useEffect(listenToKeys, []);
  useEffect(closePopovers, []);
  useEffect(() => {
    hideTip();
    document.title = `${lost.value ? "No such page" : TITLES[here]} · ${info.value?.node ?? "zombiescope"}`;
  }, [here, lost.value, info.value?.node]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the page
      </a>
      <Header />
      <Banners />
      {FILTERED.has(here) && !lost.value && info.value && <NodeBar />}
      <main id="main" tabIndex={-1} aria-label={lost.value ? "No such page" : TITLES[here]}>
        <Content />
      </main>
      <Palette />
      <Help />
      <TipLayer />
      <Toast />
    </>
  );
}

/** A popover is done when the hand goes elsewhere. */
function closePopovers(): () => void {
  const close = (event: Event): void => {
    for (const open of document.querySelectorAll<HTMLDetailsElement>("details.popover[open]"))
      if (!open.contains(event.target as Node)) open.open = false;
  };
  document.addEventListener("pointerdown", close);
  document.addEventListener("focusin", close);
  return () => {
    document.removeEventListener("pointerdown", close);
    document.removeEventListener("focusin", close);
  };
}

/** An address may be mistyped, or of another version: the page that it names is not silently another one. */
function Lost({ name }: { name: string }) {
  return (
    <div class="centred">
      <Empty title={`There is no page called ${name}`}>
        <p>Check the address, or pick a page above.</p>
        <Link class="button" to={{ page: "home" }}>
          Home
        </Link>
      </Empty>
    </div>
  );
}

/** A link says of which node it is: never another node's data under it. */
function NotServed({ node }: { node: string }) {
  return (
    <Empty title={`This link is of ${node}, which is not served here`}>
      <p>Serve its recording, or open one that this server has:</p>
      <div class="button-row">
        {recordings.value.map(({ key, title }) => (
          <button key={key} type="button" class="button" onClick={() => openRecording(key)}>
            {title}
          </button>
        ))}
      </div>
    </Empty>
  );
}

function Content() {
  const Page = PAGES[page.value];
  if (lost.value) return <Lost name={lost.value} />;
  const missing = gone.value;
  if (foreign.value || missing)
    return <div class="centred">{missing ? <Problem error={missing} /> : <NotServed node={foreign.value} />}</div>;
  if (trouble.value?.status === 401)
    return (
      <div class="centred">
        <AskToken error={trouble.value} />
      </div>
    );
  if (trouble.value && !info.value)
    return (
      <div class="centred">
        <Problem error={trouble.value} again={refresh} />
      </div>
    );
  if (!info.value)
    return (
      <div class="centred">
        <Loading title="Opening the recording" />
      </div>
    );
  return <Page key={page.value} />;
}

/** Without the address: after its # may stand the state. */
function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
