// What to do about an incident: the plan, what became of its steps, what was done by whom, and what to type. The page
// shows and copies; it has nothing that changes a machine.

import type { ActionLogLine, Cause, Fixes, FixStep, Incident } from "../../api/types";
import { Copy } from "../../chrome/copy";
import { moment, sentence, zoneName } from "../../format";
import { info, useDocument, zoneOffset } from "../../state";
import { Panel } from "../parts/parts";
import { beforeAfter, details, fixCommand, planText, steps, whoDid, withStates } from "./plan";

const MOODS = { planned: "", applied: "pg-mood-good", failed: "pg-mood-bad", undone: "", skipped: "pg-mood-watch" };
const EVENTS: Record<string, string> = {
  planned: "planned",
  applying: "started",
  applied: "done",
  found: "was already so",
  failed: "failed",
  skipped: "not wanted",
  undoing: "started to undo",
  undone: "undone",
  "undo-failed": "could not be undone",
  verified: "verified",
};

export function Fix({ incident, cause }: { incident: Incident; cause: Cause }) {
  const fixes = useDocument(
    `fixes/${encodeURIComponent(incident.id)}`,
    {},
    { every_s: info.value?.live ? 15 : 0 },
  ).data;
  const plan = withStates(steps(cause.fix), fixes);
  return (
    <>
      <Panel
        title="What to do"
        id="fix"
        class="pg-fix"
        aside={<Copy text={planText(incident, zoneOffset.value)} what="Copy the plan" />}
      >
        <p>{sentence(cause.fix.summary)}</p>
        <ol class="pg-plan">
          {plan.map((step, number) => (
            <Step key={number} step={step} />
          ))}
        </ol>
        <ToType incident={incident} plan={plan} />
        <p class="faint">Nothing on this page changes the machine: read it, copy it, and run it where it belongs.</p>
      </Panel>
      {fixes && <Log fixes={fixes} />}
    </>
  );
}

function Step({ step }: { step: FixStep }) {
  return (
    <li>
      {step.part !== "look" && <span class={`pg-tag pg-part-${step.part}`}>{step.part}</span>}{" "}
      {step.state !== "planned" && <span class={`pg-tag ${MOODS[step.state]}`}>{step.state}</span>}{" "}
      {step.does !== step.command && <span>{sentence(step.does)}</span>}{" "}
      {step.command !== null && (
        <div class="pg-step-command">
          <code>{step.command}</code> <Copy text={step.command} />
        </div>
      )}
      <WayBack step={step} />
    </li>
  );
}

/** Below a command that changes the node: what it touches and risks, how it is undone and how to see that it worked. */
function WayBack({ step }: { step: FixStep }) {
  const lines = [...details(step), ...(step.why ? [{ name: "note", text: step.why }] : [])];
  if (!lines.length) return null;
  return (
    <dl class="pg-step-details faint">
      {lines.map(({ name, text }, number) => (
        <div key={number}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function ToType({ incident, plan }: { incident: Incident; plan: readonly FixStep[] }) {
  const command = fixCommand(incident);
  if (!command) return null;
  const lines = [
    [command, "shows on the node what this would change"],
    [`sudo ${command} --apply`, "applies the plan, asks before each step, and verifies the result"],
    ...(plan.some((step) => step.state === "applied" || step.state === "failed")
      ? [[`sudo ${command} --undo`, "undoes the applied steps, the last one first"]]
      : []),
  ] as const;
  return (
    <dl class="pg-type">
      {lines.map(([line, does]) => (
        <div key={line}>
          <dt>
            <code>{line}</code> <Copy text={line as string} />
          </dt>
          <dd class="faint">{does}</dd>
        </div>
      ))}
    </dl>
  );
}

function verdict({ verified, verification }: Fixes): { word: string; mood: string } {
  if (verified === true) return { word: "fixed", mood: "pg-mood-good" };
  if (verified === false) return { word: "still happening", mood: "pg-mood-bad" };
  return { word: verification ? "can't tell" : "not verified yet", mood: "pg-mood-watch" };
}

/** What was done on this machine, as the action log has it. */
function Log({ fixes }: { fixes: Fixes }) {
  if (fixes.readable !== null)
    return (
      <Panel title="What was done">
        <p class="faint">The action log could not be read: {fixes.readable}.</p>
      </Panel>
    );
  if (!fixes.log.length) return null;
  const { word, mood } = verdict(fixes);
  const zone = zoneOffset.value;
  return (
    <Panel title="What was done" class="pg-log" aside={<span class={`pg-tag ${mood}`}>{word}</span>}>
      {fixes.verification && (
        <ul class="pg-plain">
          {fixes.verification.checks.map((check) => (
            <li key={check.name}>
              {check.name}: {check.text}
            </li>
          ))}
        </ul>
      )}
      <table class="pg-table">
        <caption>The action log of this plan, in {zoneName(zone)}, the newest last</caption>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">What</th>
            <th scope="col">Before → after</th>
          </tr>
        </thead>
        <tbody>
          {fixes.log
            .filter((line) => line.event !== "planned" && line.event !== "verified")
            .map((line, number) => (
              <Line key={number} line={line} zone={zone} />
            ))}
        </tbody>
      </table>
    </Panel>
  );
}

function Line({ line, zone }: { line: ActionLogLine; zone: number }) {
  return (
    <tr>
      <td class="mono faint">{moment(line.at, zone)}</td>
      <td>{whoDid(line)}</td>
      <td>
        {EVENTS[line.event] ?? line.event}: <code>{line.step}</code> {line.why && <span class="faint">{line.why}</span>}
      </td>
      <td class="pg-cell-wrap">{beforeAfter(line)}</td>
    </tr>
  );
}
